"""What others would do with a step, and what ours does with the same peak: all by the same forecast and cost model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import torch
from rich.table import Table

from autockpt.inductor import JointModule, capture_joints
from autockpt.machine import find_profile
from autockpt.measure import load_training
from autockpt.passes.forecast import Candidate
from autockpt.passes.graph import JointGraph
from autockpt.passes.planners import Baseline, Decision, decide, find_baselines
from autockpt.passes.problem import Budget, Outcome, Setup
from autockpt.units import Progress, format_size

TORCH_BUDGETS = (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)
"""Values of `activation_memory_budget`; the first is the default."""
_EQUAL = 1e-9
"""Seconds that count as none."""


@dataclass(frozen=True)
class Cost:
    peak_bytes: int
    recompute_seconds: float
    seconds: float
    """With the memory traffic of what is saved: a value that is computed where it is read is never written."""


@dataclass(frozen=True)
class BaselineRow:
    graph: int
    name: str
    theirs: Cost
    ours: Cost
    """With their peak as its budget."""
    min_peak_bytes: int
    """The lowest peak of ours."""

    @property
    def behind(self) -> str:
        """In what ours is worse; empty where it is as good or better."""
        if self.ours.peak_bytes > self.theirs.peak_bytes:
            return "does not fit"
        slower = self.ours.recompute_seconds > self.theirs.recompute_seconds + _EQUAL
        return "slower" if slower and self.ours.seconds > self.theirs.seconds + _EQUAL else ""

    def as_json(self) -> dict[str, object]:
        return asdict(self) | {"behind": self.behind}


def bench_baselines(
    target: str, progress: Progress, torch_budgets: Sequence[float] = TORCH_BUDGETS
) -> list[BaselineRow]:
    """A row for every baseline of every graph of the step."""
    progress("tracing")
    training = load_training(target)
    profile = find_profile(training.device)
    setup = Setup(Budget(fraction=0.0), profile, threads=torch.get_num_threads())
    graphs = capture_joints(training.model, training.inputs)
    return [row for n, joint in enumerate(graphs) for row in _rows(n, joint, setup, torch_budgets, progress)]


def _rows(
    number: int, joint: JointModule, setup: Setup, torch_budgets: Sequence[float], progress: Progress
) -> Iterator[BaselineRow]:
    graph = joint.graph
    saved = {}
    for budget in torch_budgets:
        progress(f"torch at {budget}")
        saved[f"torch {budget}"] = joint.torch_partition(activation_memory_budget=budget).saved
    progress("lowest peak")
    lowest = decide(graph, setup)
    for baseline in find_baselines(lowest.problem, saved):
        progress(f"in the peak of: {baseline.name}")
        ours = _ours(graph, setup, baseline, lowest)
        theirs = lowest.frontier.space.evaluator.evaluate(baseline.plan, baseline.name)
        yield BaselineRow(number, baseline.name, _cost(theirs), _cost(ours.candidate), lowest.candidate.peak_bytes)


def _ours(graph: JointGraph, setup: Setup, baseline: Baseline, lowest: Decision) -> Decision:
    decision = decide(graph, replace(setup, budget=Budget(total_bytes=baseline.peak_bytes)))
    return lowest if decision.outcome is Outcome.OVER_BUDGET else decision


def _cost(candidate: Candidate) -> Cost:
    return Cost(candidate.peak_bytes, candidate.recompute_seconds, candidate.seconds)


def baseline_table(rows: Sequence[BaselineRow]) -> Table:
    table = Table("graph", "baseline", "peak", "recompute", "ours in that peak", "recompute", "times", "")
    for column in table.columns[2:]:
        column.no_wrap, column.justify = True, "right"
    for row in rows:
        table.add_row(
            str(row.graph),
            row.name,
            format_size(row.theirs.peak_bytes),
            _milliseconds(row.theirs.recompute_seconds),
            format_size(row.ours.peak_bytes),
            _milliseconds(row.ours.recompute_seconds),
            _times(row),
            row.behind,
            style="red" if row.behind else None,
        )
    for graph, min_peak_bytes in {row.graph: row.min_peak_bytes for row in rows}.items():
        table.add_row(str(graph), "lowest peak of ours", "", "", format_size(min_peak_bytes), "", "", "")
    return table


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def _times(row: BaselineRow) -> str:
    """How many times ours the recomputation of a baseline takes."""
    if row.behind == "does not fit" or row.ours.recompute_seconds < _EQUAL:
        return ""
    return f"{row.theirs.recompute_seconds / row.ours.recompute_seconds:.2f}"
