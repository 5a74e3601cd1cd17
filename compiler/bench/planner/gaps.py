"""`autockpt bench plan MODELS` and `--depth`: optimality gaps of plans, and the minimum peak over depth.

Models are traced and planned; nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median

import numpy as np
import torch
from rich.table import Table

from autockpt.cost_models import load_profile
from autockpt.inductor import capture_joints, inductor_rules, reset_dynamo
from autockpt.measure import load_training
from autockpt.passes.graph import JointGraph
from autockpt.passes.planners import Decision, decide
from autockpt.passes.problem import CHECKED_MARGIN, Budget, Setup
from autockpt.progress import prefixed
from autockpt.units import Progress, format_size
from autockpt.vouch import allowed_operators

PLAN_BUDGETS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""From the minimum peak, 0.0, to the fastest plan's, 1.0."""
DEPTHS = (8, 16, 32, 64, 128)


@dataclass(frozen=True)
class GapRow:
    """One plan; all shares but `overhead` are of its step time."""

    target: str
    budget: float
    budget_bytes: int
    peak_bytes: int
    planner: str
    overhead: float
    """Extra time over the fastest plan without a budget, as a share of that plan's step time."""
    gap: float
    """Upper bound of what any plan could save."""
    gap_of_overhead: float
    """The same as a share of the overhead."""
    class_gap: float
    """Upper bound of what any plan of the interval program's class could save."""
    planning_seconds: float

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def bench_gaps(targets: Sequence[str], budgets: Sequence[float], progress: Progress) -> Iterator[GapRow]:
    for target in targets:
        progress(f"{target}: tracing")
        for graph in traced_graphs(target):
            for budget in budgets:
                progress(f"{target} at {budget}")
                decision = decide(graph, plan_setup(budget), None, prefixed(progress, f"{target} at {budget}"))
                yield _gap_row(target, budget, decision)


def traced_graphs(target: str, **settings: int) -> list[JointGraph]:
    """The joint graphs of the target's step, made by its factory with these settings."""
    reset_dynamo()
    training = load_training(target, settings=settings)
    return [joint.graph for joint in capture_joints(training.model, training.inputs)]


def plan_setup(fraction: float) -> Setup:
    """As a compilation on the CPU plans when a dry run checks the plan; the profile is the same on every machine."""
    setup = Setup(
        Budget(fraction=fraction),
        load_profile("cpu"),
        threads=torch.get_num_threads(),
        allowed=allowed_operators(),
        rules=inductor_rules(),
    )
    return replace(setup, margin=CHECKED_MARGIN)


def _gap_row(target: str, budget: float, decision: Decision) -> GapRow:
    gap = decision.gap
    return GapRow(
        target=target,
        budget=budget,
        budget_bytes=decision.budget_bytes,
        peak_bytes=decision.forecast.peak_bytes,
        planner=decision.candidate.method,
        overhead=_overhead(decision),
        gap=gap.of_step,
        gap_of_overhead=gap.of_overhead,
        class_gap=gap.class_of_step,
        planning_seconds=decision.planning_seconds,
    )


def _overhead(decision: Decision) -> float:
    gap = decision.gap
    return gap.overhead_seconds / (gap.step_seconds - gap.overhead_seconds)


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
    """The minimum peak of a model of so many layers."""

    layers: int
    values: int
    min_peak_bytes: int
    beyond_bytes: int
    """The minimum peak without parameters and their gradients."""
    planner: str
    overhead: float
    planning_seconds: float

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def bench_depth(target: str, depths: Sequence[int], progress: Progress) -> Iterator[DepthRow]:
    """The target's factory takes the number of `layers`."""
    for layers in depths:
        progress(f"{layers} layers: tracing")
        (graph,) = traced_graphs(target, layers=layers)
        progress(f"{layers} layers: planning")
        decision = decide(graph, plan_setup(0.0))
        min_peak = decision.forecast.peak_bytes
        yield DepthRow(
            layers=layers,
            values=len(graph.values),
            min_peak_bytes=min_peak,
            beyond_bytes=min_peak - 2 * graph.parameter_bytes,
            planner=decision.candidate.method,
            overhead=_overhead(decision),
            planning_seconds=decision.planning_seconds,
        )


def exponent(rows: Sequence[DepthRow]) -> float:
    """The power of depth that fits the bytes beyond parameters and gradients best."""
    layers = np.log([row.layers for row in rows])
    beyond = np.log([max(row.beyond_bytes, 1) for row in rows])
    return float(np.polyfit(layers, beyond, 1)[0])


def depth_table(rows: Sequence[DepthRow]) -> Table:
    headings = ("layers", "values", "minimum peak", "beyond parameters and gradients", "planner", "overhead", "planned")
    table = Table(*headings)
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
