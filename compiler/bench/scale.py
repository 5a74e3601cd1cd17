"""Planning time over graph size, beside torch's own partitioner on the same graphs.

Two comparisons, each like for like. Planning: ours reads the joint module and decides, torch chooses what it saves.
All: from the joint module to the two modules, the tidying and writing that both share included.

Run a function in a process of its own, and end it when its time is up.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import torch
from rich.table import Table

from autockpt.bench.synthetic import graph_of
from autockpt.cost_models import load_profile
from autockpt.inductor import JointModule
from autockpt.passes.planners import Decision, decide
from autockpt.passes.problem import Budget, Setup
from autockpt.units import Progress

SIZES = (1_000, 3_000, 10_000, 50_000)
TORCH_BUDGETS = (1.0, 0.5)
"""Its default, and the budget that asks what ours is asked."""

_WARM = 300
"""Nodes of a graph that is partitioned first, for what a process does only once."""
_LARGE = 5_000
"""From so many nodes on one run has to do."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one partitioner on one graph."""

    name: str
    planning: float | None
    """None: did not finish within the limit."""
    total: float | None


@dataclass(frozen=True)
class ScaleRow:
    nodes: int
    ours: Timing
    """Asked for half the way from the lowest peak to the fastest plan's."""
    absolute: Timing
    """Asked for the same budget in bytes."""
    torch: tuple[Timing, ...]
    limit_seconds: float

    def faster(self, timing: Timing) -> tuple[float, float]:
        """How many times as long as ours it plans, and takes in all; at least so, where it did not finish."""
        assert self.ours.planning is not None
        assert self.ours.total is not None
        planning = timing.planning or self.limit_seconds
        return planning / self.ours.planning, (timing.total or self.limit_seconds) / self.ours.total

    @property
    def times(self) -> float:
        """How many times as long torch takes, asked to stay in a budget, as ours takes to plan for one in bytes."""
        assert self.absolute.planning is not None
        return (self.torch[-1].total or self.limit_seconds) / self.absolute.planning

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def bench_scale(progress: Progress, sizes: Sequence[int] = SIZES, limit_seconds: float = 300.0) -> list[ScaleRow]:
    return [_row(nodes, limit_seconds, progress) for nodes in sizes]


def _row(nodes: int, limit_seconds: float, progress: Progress) -> ScaleRow:
    progress(f"{nodes} nodes: autockpt")
    captured = graph_of(nodes)
    half = Budget(fraction=0.5)
    _plan(graph_of(_WARM), half)
    budget_bytes = _plan(captured, half)[2].budget_bytes
    ours = _best("half way", captured, lambda: _plan(captured, half)[:2])
    absolute = _best("in bytes", captured, lambda: _plan(captured, Budget(total_bytes=budget_bytes))[:2])
    theirs = []
    for budget in TORCH_BUDGETS:
        progress(f"{nodes} nodes: torch at {budget}")
        found = within_seconds(limit_seconds, _prepare_torch, _run_torch, nodes, budget)
        theirs.append(found or Timing(_torch(budget), None, None))
    return ScaleRow(len(captured.module.graph.nodes), ours, absolute, tuple(theirs), limit_seconds)


def _best(name: str, captured: JointModule, run: Callable[[], tuple[float, float]]) -> Timing:
    """The fastest of several runs, where one is short: what else the machine does only ever adds."""
    repeats = 3 if len(captured.module.graph.nodes) < _LARGE else 1
    planning, total = zip(*(run() for _ in range(repeats)), strict=True)
    return Timing(name, min(planning), min(total))


def _plan(captured: JointModule, budget: Budget) -> tuple[float, float, Decision]:
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
    graph_of(_WARM).torch_partition(activation_memory_budget=budget)
    return graph_of(nodes), budget


def _run_torch(prepared: tuple[JointModule, float]) -> Timing:
    captured, budget = prepared

    def run() -> tuple[float, float]:
        chosen = captured.torch_partition(activation_memory_budget=budget)
        return chosen.planning_seconds, chosen.seconds

    return _best(_torch(budget), captured, run)


def _torch(budget: float) -> str:
    return f"torch {budget}"


def scale_table(rows: Sequence[ScaleRow]) -> Table:
    torches = [timing.name for timing in rows[0].torch] if rows else []
    headings = [f"{part}: {name}" for part in ("plan", "all") for name in ("ours", *torches, "times")]
    last = torches[-1] if torches else "torch"
    table = Table("nodes", *headings, "plan: in bytes", f"{last} in all / ours in bytes")
    for column in table.columns:
        column.justify = "right"
    for row in rows:
        planning, total = zip(*(row.faster(timing) for timing in row.torch), strict=True)
        table.add_row(
            f"{row.nodes:,}",
            *(_seconds(timing.planning, row) for timing in (row.ours, *row.torch)),
            " ".join(f"{times:.1f}" for times in planning),
            *(_seconds(timing.total, row) for timing in (row.ours, *row.torch)),
            " ".join(f"{times:.1f}" for times in total),
            _seconds(row.absolute.planning, row),
            f"{row.times:.1f}",
        )
    return table


def _seconds(seconds: float | None, row: ScaleRow) -> str:
    return f"{seconds:.2f} s" if seconds is not None else f"not in {row.limit_seconds:.0f} s"


Prepared = TypeVar("Prepared")
Result = TypeVar("Result")


def within_seconds(
    seconds: float, prepare: Callable[..., Prepared], run: Callable[[Prepared], Result], *arguments: Any
) -> Result | None:
    """What `run` returns for what `prepare` made of the arguments; None when `run` alone takes longer than this."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there, prepare, run, arguments), daemon=True)
    process.start()
    there.close()
    try:
        here.recv()
        if not here.poll(seconds):
            return None
        result: Result = here.recv()
        process.join()
        return result
    finally:
        process.terminate()
        process.join()


def _work(
    connection: Connection, prepare: Callable[..., Any], run: Callable[[Any], Any], arguments: tuple[Any, ...]
) -> None:
    prepared = prepare(*arguments)
    connection.send("ready")
    connection.send(run(prepared))
