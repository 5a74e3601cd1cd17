"""Planning time over graph size, beside torch's own partitioner on the same graphs.

Two times of each partitioner, both like for like. *plan*: ours reads the joint module and decides, torch's chooses what
is saved. *all*: from the joint module to the forward and backward modules, including what both do alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import torch
from rich.table import Table

from autockpt.bench.planner.synthetic import transformer_graph
from autockpt.cost_models import load_profile
from autockpt.inductor import JointModule
from autockpt.measure import within_seconds
from autockpt.passes.planners import Decision, decide
from autockpt.passes.problem import Budget, Setup
from autockpt.units import Progress

SIZES = (1_000, 3_000, 10_000, 50_000)
"""Nodes of the graphs."""
_TORCH_BUDGETS = (1.0, 0.5)
"""Values of `activation_memory_budget`: torch's default, and one that makes it plan for a budget as ours does."""
_WARMUP_NODES = 300
"""Of a graph that is partitioned first, for what a process does only once."""
_LARGE = 5_000
"""Nodes from which on each partitioner runs once instead of three times."""


@dataclass(frozen=True)
class PartitionTiming:
    """Seconds of one partitioner on one graph; None where it did not finish within the limit."""

    name: str
    planning: float | None
    total: float | None


@dataclass(frozen=True)
class ScaleRow:
    nodes: int
    ours: PartitionTiming
    """With a budget halfway between the minimum peak, which it has to find first, and the fastest plan's peak."""
    absolute: PartitionTiming
    """With the same budget in bytes."""
    torch: tuple[PartitionTiming, ...]
    limit_seconds: float

    def ratios(self, timing: PartitionTiming) -> tuple[float, float]:
        """Its planning and total time over ours; the limit stands for a time that is longer."""
        assert self.ours.planning is not None
        assert self.ours.total is not None
        planning = timing.planning or self.limit_seconds
        return planning / self.ours.planning, (timing.total or self.limit_seconds) / self.ours.total

    @property
    def budget_ratio(self) -> float:
        """Torch's total time with a budget over our planning time with a budget in bytes."""
        assert self.absolute.planning is not None
        return (self.torch[-1].total or self.limit_seconds) / self.absolute.planning

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def bench_scale(progress: Progress, sizes: Sequence[int] = SIZES, limit_seconds: float = 300.0) -> list[ScaleRow]:
    return [_row(nodes, limit_seconds, progress) for nodes in sizes]


def _row(nodes: int, limit_seconds: float, progress: Progress) -> ScaleRow:
    progress(f"{nodes} nodes: autockpt")
    captured = transformer_graph(nodes)
    halfway = Budget(fraction=0.5)
    _plan(transformer_graph(_WARMUP_NODES), halfway)
    budget_bytes = _plan(captured, halfway)[2].budget_bytes
    ours = _fastest("halfway", captured, lambda: _plan(captured, halfway)[:2])
    absolute = _fastest("in bytes", captured, lambda: _plan(captured, Budget(total_bytes=budget_bytes))[:2])
    theirs = []
    for budget in _TORCH_BUDGETS:
        progress(f"{nodes} nodes: torch at {budget}")
        found = within_seconds(limit_seconds, _prepare_torch, _time_torch, nodes, budget)
        theirs.append(found or PartitionTiming(_torch(budget), None, None))
    return ScaleRow(len(captured.module.graph.nodes), ours, absolute, tuple(theirs), limit_seconds)


def _fastest(name: str, captured: JointModule, run: Callable[[], tuple[float, float]]) -> PartitionTiming:
    """Least planning and total seconds of several runs: other work of the machine only ever adds."""
    repeats = 3 if len(captured.module.graph.nodes) < _LARGE else 1
    planning, total = zip(*(run() for _ in range(repeats)), strict=True)
    return PartitionTiming(name, min(planning), min(total))


def _plan(captured: JointModule, budget: Budget) -> tuple[float, float, Decision]:
    """Planning and total seconds, and the decision."""
    setup = Setup(budget, load_profile("cpu"), threads=torch.get_num_threads())
    joint = captured.copy()
    started = time.perf_counter()
    joint.tidy()
    tidied = time.perf_counter()
    decision = decide(joint.graph, setup)
    decided = time.perf_counter()
    joint.modules(decision.plan)
    return decided - tidied, time.perf_counter() - started, decision


def _prepare_torch(nodes: int, budget: float) -> tuple[JointModule, float]:
    transformer_graph(_WARMUP_NODES).torch_partition(activation_memory_budget=budget)
    return transformer_graph(nodes), budget


def _time_torch(prepared: tuple[JointModule, float]) -> PartitionTiming:
    captured, budget = prepared

    def run() -> tuple[float, float]:
        chosen = captured.torch_partition(activation_memory_budget=budget)
        return chosen.planning_seconds, chosen.seconds

    return _fastest(_torch(budget), captured, run)


def _torch(budget: float) -> str:
    return f"torch {budget}"


def scale_table(rows: Sequence[ScaleRow]) -> Table:
    torches = [timing.name for timing in rows[0].torch] if rows else []
    headings = [f"{part}: {name}" for part in ("plan", "all") for name in ("ours", *torches, "ratio")]
    last = torches[-1] if torches else "torch"
    table = Table("nodes", *headings, "plan: in bytes", f"{last} in all / ours in bytes")
    for column in table.columns:
        column.justify = "right"
    for row in rows:
        planning, total = zip(*(row.ratios(timing) for timing in row.torch), strict=True)
        table.add_row(
            f"{row.nodes:,}",
            *(_seconds(timing.planning, row) for timing in (row.ours, *row.torch)),
            " ".join(f"{ratio:.1f}" for ratio in planning),
            *(_seconds(timing.total, row) for timing in (row.ours, *row.torch)),
            " ".join(f"{ratio:.1f}" for ratio in total),
            _seconds(row.absolute.planning, row),
            f"{row.budget_ratio:.1f}",
        )
    return table


def _seconds(seconds: float | None, row: ScaleRow) -> str:
    return f"{seconds:.2f} s" if seconds is not None else f"not in {row.limit_seconds:.0f} s"
