"""A plan that the user gave is run as it is, or not at all: over the budget it raises, or runs and says so."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from autockpt.errors import BudgetError, PlanError
from autockpt.passes.fx import UnwritablePlan
from autockpt.passes.graph import JointGraph
from autockpt.passes.planners import Decision, judge
from autockpt.passes.problem import BrokenPlan, Setup
from autockpt.plans import PlanFile
from autockpt.units import format_size


def judged(plan: PlanFile, graph: JointGraph, setup: Setup, measured: Mapping[str, float] | None = None) -> Decision:
    """The decision for what this plan says of this graph. Raises PlanError where that is nothing, or may not be."""
    try:
        return judge(graph, plan.for_graph(graph), setup, measured)
    except BrokenPlan as broken:
        raise unusable(broken) from broken


def over_budget(decision: Decision, on_infeasible: str) -> None:
    """Raise, or warn where the user would rather have it run."""
    needed = decision.looks[-1].needed_bytes if decision.looks else decision.forecast.peak_bytes
    cap = decision.budget_bytes
    message = (
        f"the plan needs {format_size(needed)} ({needed} bytes), which is over memory_budget, "
        f"{format_size(cap)} ({cap} bytes)"
    )
    if on_infeasible == "error":
        floor = decision.min_peak_bytes
        ways_out = f"raise memory_budget, or leave `plan` out: the lowest peak of any is {format_size(floor)}"
        raise BudgetError(f"{message}; {ways_out}", cap, floor)
    warnings.warn(f"autockpt: {message}; running it all the same", RuntimeWarning, stacklevel=2)


def unusable(error: Exception) -> PlanError:
    """What to raise where anything fails with a given plan: another partition is not what was asked for."""
    ours = isinstance(error, BrokenPlan | UnwritablePlan)
    return PlanError(f"the plan cannot be used: {error if ours else f'{type(error).__name__}: {error}'}")
