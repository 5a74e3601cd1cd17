"""Warm start: a second process plans nothing and runs nothing dry, and no plan is served that is not the one asked."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
import torch._functorch.config as functorch_config
from torch import Tensor, nn
from torch._dynamo.utils import counters

import autockpt
from autockpt.partition import Figures, GraphDecision
from autockpt.passes.problem import Budget
from autockpt.step import ledger_of
from autockpt.step.optimizers import OptimizerStates
from autockpt.step.stored.graph_file import StoredGraphPlan, StoredOption, read_graph, write_graph
from autockpt.step.stored.warm import _fits

SCRIPT = Path(__file__).parents[2] / "warm_process.py"
KEY, ENTRY, STEP = "a" * 32, "b" * 32, "c" * 32


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AUTOCKPT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(ledger_of(torch.device("cpu")), "optimizers", OptimizerStates(torch.device("cpu")))
    monkeypatch.setattr(OptimizerStates, "find", lambda _: None)
    yield
    forget_compiled_code()


def forget_compiled_code() -> None:
    torch._dynamo.reset()
    gc.collect()


@pytest.mark.inductor
def test_a_second_process_finds_plan_and_code(tmp_path: Path) -> None:
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    asked = {"options": {"memory_budget": "1.5MiB"}, "rebuild": True}

    def process() -> dict[str, Any]:
        command = [sys.executable, str(SCRIPT), json.dumps(asked)]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900, check=False)
        assert ran.returncode == 0, ran.stderr
        found: dict[str, Any] = json.loads(ran.stdout)
        return found

    cold, warm = process(), process()
    assert (cold["stored"], cold["dry_runs"]) == ([False], [1])
    assert (warm["stored"], warm["dry_runs"], warm["planning"]) == ([True], [0], [0.0])
    assert warm["aot"]["autograd_cache_hit"] == 1
    assert warm["inductor"] == {"hit": 2, "miss": 0}
    assert warm["plans"] == cold["plans"]
    assert warm["gradient"] == cold["gradient"]
    assert warm["figures"] == cold["figures"]
    assert "by an earlier process" in warm["decisions"][0]
    # The joint graph is traced again where it is asked for, and the plan verified against it.
    assert warm["rebuilt"] == warm["plans"][0]
    assert warm["rebuilt_outcome"] == warm["figures"][0][0]
    assert warm["rebuilt_peak"] == warm["figures"][0][2:]


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16), nn.GELU(), nn.Linear(16, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).square().mean()


@dataclass(frozen=True)
class Ran:
    made: GraphDecision
    was_found: bool
    gradient: list[float]


def run(budget: float | str = 1.0, batch: int = 64, outside: int = 0, dynamic: bool = False, **options: Any) -> Ran:
    """A step compiled anew, as in a process of its own: compiled functions are forgotten, files stay."""
    forget_compiled_code()
    held = torch.empty(outside, dtype=torch.uint8)
    torch.manual_seed(0)
    model, x = Small(), torch.randn(batch, 16)
    before = counters["aot_autograd"]["autograd_cache_hit"]
    given = {"memory_budget": budget, "scope": "step", **options}
    step = torch.compile(model, backend="autockpt", options=given, dynamic=dynamic)
    step(x).backward()
    made = autockpt.decisions()[-1]
    gradients = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    del held
    return Ran(made, counters["aot_autograd"]["autograd_cache_hit"] > before, torch.cat(gradients).tolist())


@pytest.mark.inductor
def test_only_the_plan_that_was_asked_for_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(0.0)
    assert not first.was_found
    again = run(0.0)
    assert again.was_found
    assert again.made.is_stored
    assert again.gradient == first.gradient
    assert again.made.graph_plan == first.made.graph_plan

    # Another budget, another size, another option that plans depend on.
    other = run(1.0)
    assert not other.was_found
    assert other.made.graph_plan.saved != first.made.graph_plan.saved
    assert not run(0.0, batch=96).was_found
    assert not run(0.0, planner="min_cut").was_found
    assert not run(0.0, device="h100").was_found
    # Dynamic sizes come with guards, and are planned every time.
    assert not run(0.0, dynamic=True).was_found
    assert not run(0.0, dynamic=True).was_found
    # An operator that is vouched for.
    monkeypatch.setattr("autockpt.backend.allowed_operators", lambda: ("mylib::op",))
    assert not run(0.0).was_found
    monkeypatch.undo()
    # Another version of autockpt's sources.
    monkeypatch.setenv("AUTOCKPT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("autockpt.partition.partitioner.source_hash", lambda: "another version")
    assert not run(0.0).was_found


@pytest.mark.inductor
def test_what_is_live_outside_decides_whether_a_plan_is_served(tmp_path: Path, live_before: int) -> None:
    budget = live_before + 400_000
    first = run(budget, outside=120_000)
    assert first.made.outcome.name == "FASTEST"
    # No budget has a faster plan than the fastest.
    assert run(budget, outside=100_000).was_found

    (path,) = (tmp_path / "graphs").glob("*.json")
    path.write_bytes(path.read_bytes().replace(b'"outcome":"fastest"', b'"outcome":"fits"'))
    assert run(budget, outside=120_000).was_found
    # With 20 kB more there may be a faster one.
    assert not run(budget, outside=100_000).was_found


@pytest.mark.inductor
def test_without_its_file_or_without_the_cache_a_graph_is_planned(tmp_path: Path) -> None:
    run(0.5)
    (path,) = (tmp_path / "graphs").glob("*.json")
    path.write_bytes(path.read_bytes()[:-20])
    assert not run(0.5).was_found
    assert run(0.5).was_found
    path.unlink()
    assert not run(0.5).was_found
    with functorch_config.patch(enable_autograd_cache=False):
        assert not run(0.5).was_found


def stored(**changed: Any) -> StoredGraphPlan:
    facts: dict[str, Any] = {"outcome": "fits", "budget_bytes": 10_000, "needed_bytes": 9_990, **changed}
    figures = Figures(
        peak_bytes=9_000,
        compiled_bytes=9_000,
        graph_input_bytes=10,
        saved_bytes=5,
        step_seconds=1.0,
        recompute_seconds=0.5,
        planning_seconds=1.0,
        method="cuts",
        saved=("a",),
        backward=("b",),
        outcome=facts["outcome"],
        budget_bytes=facts["budget_bytes"],
        needed_bytes=facts["needed_bytes"],
    )
    return StoredGraphPlan(KEY, ENTRY, STEP, facts["budget_bytes"], figures, StoredOption(1, 2, 3, 1.0, 0))


def test_a_plan_is_taken_while_it_fits_and_the_budget_hardly_changed() -> None:
    assert _fits(stored(), Budget(total_bytes=10_000))
    assert _fits(stored(), Budget(total_bytes=9_990))
    assert _fits(stored(), Budget(total_bytes=10_039))
    assert not _fits(stored(), Budget(total_bytes=9_989))
    assert not _fits(stored(), Budget(total_bytes=10_040))
    # No budget has a faster one than the fastest.
    assert _fits(stored(outcome="fastest"), Budget(total_bytes=10**9))
    assert not _fits(stored(), Budget(fraction=0.5))


def test_files_are_untrusted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_graph(tmp_path, stored())
    (path,) = tmp_path.iterdir()
    assert read_graph(tmp_path, KEY) == stored()
    raw = json.loads(path.read_bytes())

    def with_figures(**changed: Any) -> dict[str, Any]:
        return raw | {"figures": raw["figures"] | changed}

    damaged = [
        raw | {"key": ENTRY},
        raw | {"entry": "../../etc"},
        raw | {"schema": 2},
        raw | {"more": 1},
        with_figures(needed_bytes=-1),
        with_figures(outcome="whatever"),
        with_figures(method="\x1b[2J"),
        with_figures(saved=["a", "a"]),
        {},
    ]
    for content in damaged:
        path.write_bytes(msgspec.json.encode(content))
        assert read_graph(tmp_path, KEY) is None
    path.write_bytes(b"[" * 10_000)
    assert read_graph(tmp_path, KEY) is None
    assert len(caplog.messages) == len(damaged) + 1
    assert all("is ignored, and the graph is planned anew" in message for message in caplog.messages)
