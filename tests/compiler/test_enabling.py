"""`autockpt.enable()`: whoever compiles for Inductor is planned, and `disable()` leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import pytest
import torch
from torch import nn

import autockpt
from autockpt import enabling
from autockpt.errors import OptionError

WRAPPER = torch._TorchCompileInductorWrapper
ORIGINAL = WRAPPER.__call__
ROUTINES = (FunctionType, classmethod, staticmethod, property)


@pytest.fixture(autouse=True)
def undone() -> Iterator[None]:
    yield
    autockpt.disable()
    assert WRAPPER.__call__ is ORIGINAL


class Net(nn.Module):
    """Not one of torch's own classes: Dynamo does not trace those that are compiled in place."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)  # type: ignore[no-any-return]


def net() -> nn.Module:
    return Net()


def planned(step: Callable[[], Any]) -> int:
    """How many graphs were planned while it ran."""
    before = len(autockpt.decisions())
    step()
    return len(autockpt.decisions()) - before


def train(compiled: Callable[..., Any]) -> Callable[[], None]:
    return lambda: compiled(torch.randn(256, 8)).sum().backward()


@pytest.mark.parametrize("how", [{}, {"backend": "inductor"}, {"mode": "default"}])
def test_torch_compile_for_inductor_is_planned(how: dict[str, str]) -> None:
    autockpt.enable(memory_budget=0.0, lower="eager")

    assert planned(train(torch.compile(net(), **how))) == 1


def test_a_module_compiled_in_place_before_enabling_is_planned_when_it_first_runs() -> None:
    model = net()
    model.compile()
    autockpt.enable(memory_budget=0.0, lower="eager")

    assert planned(train(model)) == 1


def test_other_backends_are_left_alone() -> None:
    autockpt.enable(memory_budget=0.0, lower="eager")

    assert planned(train(torch.compile(net(), backend="aot_eager"))) == 0


def test_disable_restores_the_very_object_that_torch_had() -> None:
    before = {name: value for name, value in vars(torch).items() if name.startswith("_TorchCompile")}
    methods = dict(vars(WRAPPER))
    autockpt.enable(lower="eager")
    autockpt.enable(lower="eager")
    assert WRAPPER.__call__ is not ORIGINAL
    autockpt.disable()

    assert dict(vars(WRAPPER)) == methods
    assert {name: vars(torch)[name] for name in before} == before
    assert torch._dynamo.backends.registry.get_default_backend() == "inductor"


def test_as_a_context_manager_the_innermost_counts_and_ends_with_its_block() -> None:
    with autockpt.enable(memory_budget="1GiB", lower="eager"):
        with autockpt.enable(memory_budget="3GiB", lower="eager"):
            train(torch.compile(net()))()
            assert autockpt.decisions()[-1].budget_bytes > 2 * 2**30
        train(torch.compile(net()))()
        assert autockpt.decisions()[-1].budget_bytes <= 2**30
    assert WRAPPER.__call__ is ORIGINAL


def test_a_model_that_ran_before_is_planned_anew_with_the_options_that_hold() -> None:
    compiled = torch.compile(net(), backend="inductor")
    with autockpt.enable(memory_budget=0.0, lower="eager"):
        assert planned(train(compiled)) == 1
    with autockpt.enable(memory_budget=1.0, lower="eager"):
        assert planned(train(compiled)) == 1


def test_options_of_torch_compile_reach_inductor(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr("autockpt.backend.compile_graph", lambda gm, inputs, options: seen.append(options) or gm)
    autockpt.enable(memory_budget=0.5, epilogue_fusion=True)
    torch.compile(net(), options={"max_autotune": True})(torch.randn(4, 8))

    assert seen[0].memory_budget == 0.5
    assert dict(seen[0].inductor) == {"epilogue_fusion": True, "max_autotune": True}


def test_a_wrong_option_is_refused_at_once() -> None:
    with pytest.raises(OptionError, match="memory_budgets"):
        autockpt.enable(memory_budgets=0.5)
    assert WRAPPER.__call__ is ORIGINAL


def test_threads_may_enable_and_leave_in_any_order() -> None:
    def work() -> None:
        for _ in range(200):
            with autockpt.enable(lower="eager"):
                assert WRAPPER.__call__ is not ORIGINAL

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert WRAPPER.__call__ is ORIGINAL


def in_a_process(code: str, **environment: str) -> tuple[list[str], str]:
    """The words it prints, and its warnings."""
    command = [sys.executable, "-W", "always", "-c", code]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return done.stdout.split(), done.stderr


PLANNED = "import torch; print(torch._TorchCompileInductorWrapper.__call__.__module__)"


def test_the_environment_enables_at_the_import_of_torch() -> None:
    """And loads next to nothing of ours before a graph is compiled."""
    loaded = "; import sys; print(len([m for m in sys.modules if m.startswith('autockpt')]) <= 5)"

    assert in_a_process(PLANNED + loaded, AUTOCKPT_ENABLE="1")[0] == ["autockpt.inductor.inductor_calls", "True"]
    assert in_a_process(PLANNED)[0] == ["torch"]
    assert in_a_process(PLANNED, AUTOCKPT_ENABLE="0")[0] == ["torch"]


@pytest.mark.parametrize("first", ["autockpt.enabling", "autockpt.inductor.inductor_calls", "autockpt.backend"])
def test_our_modules_may_be_imported_before_torch(first: str) -> None:
    assert in_a_process(f"import {first}; {PLANNED}", AUTOCKPT_ENABLE="1")[0] == ["autockpt.inductor.inductor_calls"]


def test_a_value_that_is_neither_on_nor_off_is_a_warning_and_not_an_error() -> None:
    assert "AUTOCKPT_ENABLE='ture' is neither 1 nor 0" in in_a_process(PLANNED, AUTOCKPT_ENABLE="ture")[1]


def test_options_of_the_environment_count_when_enabled_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOCKPT_ENABLE", "1")
    monkeypatch.setenv("AUTOCKPT_MEMORY_BUDGET", "0.0")
    monkeypatch.setenv("AUTOCKPT_LOWER", "eager")
    enabling.autoload()

    assert planned(train(torch.compile(net()))) == 1


def callables_of_torch() -> dict[tuple[str, str], object]:
    """Every function, method and class of the modules of torch that are loaded, by module or class and name."""
    found: dict[tuple[str, str], object] = {}
    for module in [value for name, value in list(sys.modules.items()) if name.partition(".")[0] == "torch"]:
        if not isinstance(module, ModuleType):
            continue
        for name, value in list(vars(module).items()):
            if not callable(value):
                continue
            found[module.__name__, name] = value
            if isinstance(value, type) and value.__module__ == module.__name__:
                members = {key: member for key, member in vars(value).items() if key not in ("__doc__", "__dict__")}
                routines = {key: member for key, member in members.items() if isinstance(member, ROUTINES)}
                found.update({(f"{module.__name__}.{name}", key): member for key, member in routines.items()})
    return found


def replaced(before: dict[tuple[str, str], object]) -> set[tuple[str, str]]:
    now = callables_of_torch()
    return {where for where, value in before.items() if now.get(where) is not value}


def test_after_a_planned_step_every_function_and_class_of_torch_is_the_object_it_was() -> None:
    """Not only the call that `enable` replaces: nothing that planning, lowering or the ledger touch stays replaced."""
    with autockpt.enable(memory_budget=0.0, lower="eager", scope="step"):
        train(torch.compile(net()))()  # Modules that are loaded late, and what they set up once.
    before = callables_of_torch()
    autockpt.enable(memory_budget=0.0, lower="eager", scope="step")
    assert planned(train(torch.compile(net()))) == 1
    assert replaced(before) == {("torch._TorchCompileInductorWrapper", "__call__")}
    autockpt.disable()

    assert replaced(before) == set()
