"""How far plans may be from the best, and how the floor grows with depth: planned only, nothing is compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median

import numpy as np
import torch
from rich.table import Table

from autockpt.cost_models import load_profile
from autockpt.inductor import capture_joints, reset_dynamo
from autockpt.measure import load_training
from autockpt.passes.graph import JointGraph
from autockpt.passes.planners import Decision, decide
from autockpt.passes.problem import CHECKED_MARGIN, Budget, Setup
from autockpt.units import Progress, format_size

BUDGETS = (0.1, 0.3, 0.5, 0.7, 0.9)
DEPTHS = (8, 16, 32, 64, 128)


@dataclass(frozen=True)
class GapRow:
    target: str
    budget: float
    budget_bytes: int
    peak_bytes: int
    planner: str
    overhead: float
    """Of the step without a budget."""
    gap: float
    """At most this much of the step slower than any plan."""
    gap_of_overhead: float
    class_gap: float
    planning_seconds: float

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def bench_gaps(targets: Sequence[str], budgets: Sequence[float], progress: Progress) -> Iterator[GapRow]:
    for target in targets:
        progress(f"{target}: tracing")
        for graph in graphs_of(target):
            for budget in budgets:
                progress(f"{target} at {budget}")
                yield _gap_row(target, budget, decide(graph, _setup(budget)))


def graphs_of(target: str, **settings: int) -> list[JointGraph]:
    reset_dynamo()
    training = load_training(target, settings=settings)
    return [joint.graph for joint in capture_joints(training.model, training.inputs)]


def _setup(fraction: float) -> Setup:
    setup = Setup(Budget(fraction=fraction), load_profile("cpu"), threads=torch.get_num_threads())
    return replace(setup, margin=CHECKED_MARGIN)


def _gap_row(target: str, budget: float, decision: Decision) -> GapRow:
    gap = decision.gap
    return GapRow(
        target=target,
        budget=budget,
        budget_bytes=decision.budget_bytes,
        peak_bytes=decision.forecast.peak_bytes,
        planner=decision.candidate.method,
        overhead=gap.overhead_seconds / (gap.step_seconds - gap.overhead_seconds),
        gap=gap.of_step,
        gap_of_overhead=gap.of_overhead,
        class_gap=gap.class_of_step,
        planning_seconds=decision.planning_seconds,
    )


def gap_table(rows: Sequence[GapRow]) -> Table:
    table = Table("model", "budget", "", "peak", "planner", "overhead", "gap", "of overhead", "class gap", "planned")
    for row in rows:
        table.add_row(
            row.target.rpartition(":")[2],
            f"{row.budget}",
            format_size(row.budget_bytes),
            format_size(row.peak_bytes),
            row.planner,
            f"{row.overhead:.1%}",
            f"{row.gap:.1%}",
            f"{row.gap_of_overhead:.0%}",
            f"{row.class_gap:.1%}",
            f"{row.planning_seconds:.2f} s",
        )
    return table


def gap_summary(rows: Sequence[GapRow]) -> str:
    gaps = [row.gap for row in rows]
    return f"gap to every plan, of step time: median {median(gaps):.1%}, worst {max(gaps):.1%}, {len(gaps)} plans"


@dataclass(frozen=True)
class DepthRow:
    layers: int
    values: int
    min_peak_bytes: int
    beyond_bytes: int
    """The floor without parameters and their gradients."""
    planner: str
    overhead: float
    planning_seconds: float

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def bench_depth(target: str, depths: Sequence[int], progress: Progress) -> Iterator[DepthRow]:
    """The factory takes `layers`."""
    for layers in depths:
        progress(f"{layers} layers: tracing")
        (graph,) = graphs_of(target, layers=layers)
        progress(f"{layers} layers: planning")
        decision = decide(graph, _setup(0.0))
        floor, gap = decision.forecast.peak_bytes, decision.gap
        yield DepthRow(
            layers=layers,
            values=len(graph.values),
            min_peak_bytes=floor,
            beyond_bytes=floor - 2 * graph.parameter_bytes,
            planner=decision.candidate.method,
            overhead=gap.overhead_seconds / (gap.step_seconds - gap.overhead_seconds),
            planning_seconds=decision.planning_seconds,
        )


def exponent(rows: Sequence[DepthRow]) -> float:
    """Of depth, in the power that fits the bytes beyond parameters and gradients best."""
    layers = np.log([row.layers for row in rows])
    beyond = np.log([max(row.beyond_bytes, 1) for row in rows])
    return float(np.polyfit(layers, beyond, 1)[0])


def depth_table(rows: Sequence[DepthRow]) -> Table:
    table = Table("layers", "values", "floor", "beyond parameters and gradients", "planner", "overhead", "planned")
    for row in rows:
        table.add_row(
            str(row.layers),
            f"{row.values:,}",
            format_size(row.min_peak_bytes),
            format_size(row.beyond_bytes),
            row.planner,
            f"{row.overhead:.1%}",
            f"{row.planning_seconds:.2f} s",
        )
    return table
