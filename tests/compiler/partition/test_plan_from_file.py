"""`options={"plan": ...}`: exactly that plan runs, with the same gradients, inside the budget, or it is refused."""

from __future__ import annotations

import importlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import autockpt
from autockpt import Backend, BudgetError, OptionError, Plan, PlanError
from autockpt.cost_models import load_profile
from autockpt.partition import Partitioner, Request
from autockpt.partition.partitioner import source_hash
from autockpt.passes.planners.fixed import FROM_FILE
from autockpt.passes.problem.plan import Budget, InductorRules, Outcome, Setup


class Deep(nn.Module):
    def __init__(self, width: int = 16, layers: int = 4, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + self.dropout(F.gelu(layer(x)))
        return x.square().mean()


def gradients(model: nn.Module, step: Any, x: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    torch.manual_seed(7)
    step(x).backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def trained(model: nn.Module, x: Tensor, **options: Any) -> dict[str, Tensor]:
    torch._dynamo.reset()
    step = torch.compile(model, backend="autockpt", options={"lower": "eager", "memory_budget": "1GiB", **options})
    return gradients(model, step, x)


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def saved(path: Path, model: nn.Module, x: Tensor, budget: float = 0.0) -> Plan:
    trained(model, x, memory_budget=budget)
    plan = autockpt.decisions()[-1].plan
    plan.save(path)
    return plan


@pytest.fixture
def model() -> nn.Module:
    return Deep()


@pytest.fixture
def x() -> Tensor:
    return torch.randn(8, 16)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_a_loaded_plan_gives_the_same_gradients_and_is_exactly_that_plan(
    tmp_path: Path, x: Tensor, dropout: float
) -> None:
    model = Deep(dropout=dropout)
    path = tmp_path / "plan.json"
    plan = saved(path, model, x)
    planned = autockpt.decisions()[-1]
    expected = trained(model, x, memory_budget=1.0)
    assert autockpt.decisions()[-1].graph_plan != planned.graph_plan
    before = len(autockpt.decisions())
    assert same(trained(model, x, plan=str(path)), expected)
    made = autockpt.decisions()[-1]
    assert len(autockpt.decisions()) == before + 1
    assert made.graph_plan == planned.graph_plan
    assert made.plan == plan == Plan.load(path)
    assert made.method == FROM_FILE
    assert made.peak_bytes == planned.peak_bytes
    assert FROM_FILE in str(made)


@pytest.mark.parametrize("given", [str, Path, Plan.load], ids=["text", "path", "plan"])
def test_a_plan_is_given_as_a_path_or_as_itself(tmp_path: Path, model: nn.Module, x: Tensor, given: Any) -> None:
    plan = saved(tmp_path / "plan.json", model, x)
    trained(model, x, plan=given(tmp_path / "plan.json"))
    assert autockpt.decisions()[-1].plan == plan


def test_the_environment_names_a_plan_too(
    tmp_path: Path, model: nn.Module, x: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path / "plan.json", model, x)
    monkeypatch.setenv("AUTOCKPT_PLAN", str(tmp_path / "plan.json"))
    trained(model, x)
    assert autockpt.decisions()[-1].decision.candidate.method == FROM_FILE


def test_nothing_is_planned_where_a_plan_is_given(
    tmp_path: Path, model: nn.Module, x: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path / "plan.json", model, x)
    monkeypatch.setattr(importlib.import_module("autockpt.partition.choose"), "decide", None)
    trained(model, x, plan=str(tmp_path / "plan.json"))


@pytest.mark.parametrize("other", [Deep(layers=5), Deep(width=16, dropout=0.5)], ids=["a layer more", "dropout"])
def test_a_plan_of_another_model_is_refused_and_nothing_runs_instead(
    tmp_path: Path, model: nn.Module, x: Tensor, other: nn.Module
) -> None:
    saved(tmp_path / "plan.json", model, x)
    before = len(autockpt.decisions())
    with pytest.raises(
        PlanError, match=r"the plan is for another graph: .* in the plan but .* in this graph"
    ) as refused:
        trained(other, x, plan=str(tmp_path / "plan.json"))
    assert type(refused.value) is PlanError
    assert len(str(refused.value).splitlines()) == 1
    assert len(autockpt.decisions()) == before


def test_another_batch_is_another_graph(tmp_path: Path, model: nn.Module, x: Tensor) -> None:
    saved(tmp_path / "plan.json", model, x)
    with pytest.raises(PlanError, match=r"float32\[8,16\].* in the plan but .*float32\[9,16\].* in this graph"):
        trained(model, torch.randn(9, 16), plan=str(tmp_path / "plan.json"))


def test_a_model_with_a_graph_break_needs_a_plan_for_both_graphs(tmp_path: Path, x: Tensor) -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = Deep(layers=2), nn.Linear(16, 16)

        def forward(self, x: Tensor) -> Tensor:
            y = F.gelu(self.two(x))
            torch._dynamo.graph_break()
            return self.one(y)

    model, path = Broken(), tmp_path / "plan.json"
    before = len(autockpt.decisions())
    expected = trained(model, x, memory_budget=0.0)
    made = autockpt.decisions()[before:]
    assert len(made) == 2
    last = made[-1].plan
    Plan.of(one.decision for one in made).save(path)
    assert same(trained(model, x, plan=str(path)), expected)
    assert [one.graph_plan for one in autockpt.decisions()[-2:]] == [one.graph_plan for one in made]
    last.save(path)
    with pytest.raises(PlanError, match="another graph"):
        trained(model, x, plan=str(path))


def test_a_file_that_changed_makes_another_backend(tmp_path: Path, model: nn.Module, x: Tensor) -> None:
    path = tmp_path / "plan.json"

    def step() -> Backend:
        backend = Backend("1GiB", lower="eager", plan=str(path))
        gradients(model, torch.compile(model, backend=backend), x)
        return backend

    saved(path, model, x, 0.0)
    torch._dynamo.reset()
    before = len(autockpt.decisions())
    one, again = step(), step()
    assert one == again
    assert hash(one) == hash(again)
    assert len(autockpt.decisions()) == before + 1
    other = saved(path, model, x, 1.0)
    assert step() != one
    assert autockpt.decisions()[-1].plan == other


def test_what_keys_a_cache_changes_with_the_plan_and_with_nothing_else_of_it(
    tmp_path: Path, model: nn.Module, x: Tensor
) -> None:
    tight, generous = saved(tmp_path / "a.json", model, x, 0.0), saved(tmp_path / "b.json", model, x, 1.0)

    def uuid(plan: Plan | None) -> str:
        setup = Setup(Budget(fraction=0.5), load_profile("cpu"))
        return Partitioner(Request(setup, plan=plan), "error").key

    assert uuid(tight) == uuid(Plan.load(tmp_path / "a.json"))
    assert len({uuid(tight), uuid(generous), uuid(None)}) == 3


def test_what_keys_a_cache_changes_with_the_release_of_torch_and_with_its_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def uuid(rules: InductorRules) -> str:
        source_hash.cache_clear()
        return Partitioner(Request(Setup(Budget(fraction=0.5), load_profile("cpu"), rules=rules)), "error").key

    older, newer = InductorRules(), InductorRules(gpu_numbers_repeat=True)
    here = uuid(older)
    assert here != uuid(newer)
    monkeypatch.setattr(torch, "__version__", "2.99.0")
    other = uuid(older)
    source_hash.cache_clear()
    assert other != here


def test_a_given_plan_over_the_budget_is_refused_with_both(tmp_path: Path, model: nn.Module, x: Tensor) -> None:
    plan = saved(tmp_path / "plan.json", model, x, 1.0)
    peak, floor = autockpt.decisions()[-1].peak_bytes, autockpt.decisions()[-1].min_peak_bytes
    with pytest.raises(BudgetError, match=r"the plan needs .* over memory_budget") as refused:
        trained(model, x, plan=plan, memory_budget=peak - 1)
    assert "raise memory_budget, or leave `plan` out" in str(refused.value)
    assert refused.value.budget_bytes == peak - 1
    # What is live outside of the graph counts; of other tests that may be a few tensors.
    assert refused.value.min_peak_bytes == pytest.approx(floor, abs=2**16)
    trained(model, x, plan=plan, memory_budget=peak + 2**16)


def test_on_infeasible_minimum_runs_the_given_plan_and_says_so(tmp_path: Path, model: nn.Module, x: Tensor) -> None:
    plan = saved(tmp_path / "plan.json", model, x, 1.0)
    expected = trained(model, x)
    with pytest.warns(RuntimeWarning, match="the plan needs .*; running it all the same"):
        got = trained(model, x, plan=plan, memory_budget=2**16, on_infeasible="minimum")
    assert same(got, expected)
    assert autockpt.decisions()[-1].plan == plan
    assert autockpt.decisions()[-1].outcome is Outcome.OVER_BUDGET


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("nowhere.json", "nowhere.json cannot be read: No such file"),
        ("", "is not a regular file"),
        (3, "is a int"),
        (True, "is a bool"),
        ({"graphs": []}, "is a dict"),
    ],
)
def test_what_is_no_plan_is_refused_at_the_door(given: Any, why: str) -> None:
    with pytest.raises(OptionError, match=r"option plan=.*accepted is a plan, or the path of one") as refused:
        Backend(plan=given)
    assert why in str(refused.value)


def test_a_corrupted_plan_is_refused_at_the_door(tmp_path: Path, model: nn.Module, x: Tensor) -> None:
    path = tmp_path / "plan.json"
    saved(path, model, x)
    path.write_text(path.read_text()[:-9])
    with pytest.raises(OptionError, match="is not complete JSON"):
        trained(model, x, plan=str(path))


def test_any_failure_of_ours_with_a_given_plan_is_an_error_and_no_other_partition(
    tmp_path: Path, model: nn.Module, x: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path / "plan.json", model, x)

    def fail(*_: Any, **__: Any) -> Any:
        raise KeyError("on purpose")

    monkeypatch.setattr(importlib.import_module("autockpt.inductor.joint"), "read", fail)
    with pytest.raises(PlanError, match="the plan cannot be used: KeyError: 'on purpose'"):
        trained(model, x, plan=str(tmp_path / "plan.json"))


def mutate(raw: Any, dice: random.Random) -> None:
    """Keep, forget, move, repeat, leave out: what a careless hand or a bad one could do."""
    graph = raw["graphs"][0]
    names = [line.split()[0] for line in graph["values"]]
    saved, backward = graph["saved"], graph["backward"]
    change = dice.randrange(7)
    if change == 0:
        saved.append({"name": dice.choice(names), "bytes": 0, "module": ""})
    elif change == 1 and saved:
        saved.pop(dice.randrange(len(saved)))
    elif change == 2:
        backward.insert(dice.randrange(len(backward)), dice.choice(names))
    elif change == 3:
        backward.pop(dice.randrange(len(backward)))
    elif change == 4:
        one, other = (dice.randrange(len(backward)) for _ in range(2))
        backward[one], backward[other] = backward[other], backward[one]
    elif change == 5:
        backward[dice.randrange(len(backward))] = dice.choice(names)
    else:
        at = dice.randrange(len(backward))
        backward.insert(at, backward[at])


def test_a_plan_that_was_tampered_with_is_refused_or_trains_as_if_it_had_not_been(tmp_path: Path) -> None:
    model, x, path = Deep(width=8, layers=2, dropout=0.5), torch.randn(4, 8), tmp_path / "plan.json"
    plan = saved(path, model, x, 0.3)
    expected, text, dice = trained(model, x), path.read_text(), random.Random(0)
    refused = ran = 0
    for _ in range(60):
        raw = json.loads(text)
        mutate(raw, dice)
        path.write_text(json.dumps(raw))
        try:
            got = trained(model, x, plan=str(path))
        except (PlanError, OptionError):
            refused += 1
            continue
        assert same(got, expected)
        assert autockpt.decisions()[-1].decision.plan == Plan.load(path).graphs[0].plan
        ran += Plan.load(path) != plan
    assert refused
    assert ran


@pytest.mark.inductor
def test_a_plan_from_inductor_runs_under_inductor_and_is_held_to_the_compiled_peak(tmp_path: Path) -> None:
    model, x = Deep(width=64, layers=4), torch.randn(256, 64)
    step = torch.compile(model, backend=Backend(0.0))
    expected = gradients(model, step, x)
    made = autockpt.decisions()[-1]
    made.plan.save(tmp_path / "plan.json")
    torch._dynamo.reset()
    compiled_bytes = made.compiled_bytes
    assert compiled_bytes is not None
    budget = compiled_bytes + compiled_bytes // 100 + 2**16
    got = gradients(model, torch.compile(model, backend=Backend(budget, plan=tmp_path / "plan.json")), x)
    loaded = autockpt.decisions()[-1]
    assert same(got, expected)
    assert (loaded.graph_plan, loaded.compiled_bytes) == (made.graph_plan, compiled_bytes)
    torch._dynamo.reset()
    with pytest.raises(BudgetError, match=f"the plan needs .*{compiled_bytes} bytes"):
        torch.compile(model, backend=Backend(compiled_bytes, plan=tmp_path / "plan.json"))(x)


CACHED = """
import json, sys, torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.GELU(), nn.Linear(64, 8))
option = {"plan": sys.argv[2]} if sys.argv[2:] else {}
step = torch.compile(model, backend="autockpt", options={"memory_budget": 0.0, **option})
step(torch.randn(128, 64)).square().mean().backward()
import autockpt
from torch._dynamo.utils import counters
autockpt.decisions()[-1].plan.save(sys.argv[1])
print(json.dumps([counters["inductor"][f"fxgraph_cache_{what}"] for what in ("hit", "miss")]))
"""


@pytest.mark.inductor
def test_a_given_plan_is_found_in_inductors_cache_by_the_next_process(tmp_path: Path) -> None:
    def run(*arguments: Path) -> list[int]:
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-c", CACHED, *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        hits: list[int] = json.loads(done.stdout.splitlines()[-1])
        return hits

    first, second, third = (tmp_path / name for name in ("1.json", "2.json", "3.json"))
    run(first)
    # Forward and backward are lowered once, to be looked at; the compilation finds both.
    assert run(second, first) == [2, 2]
    assert run(third, second) == [4, 0]
    assert first.read_bytes() == second.read_bytes() == third.read_bytes()
