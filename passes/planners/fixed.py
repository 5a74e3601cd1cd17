"""A plan from a file in the place of planning: verified, priced and compared with the budget, and never changed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from autockpt.passes.graph import JointGraph, Role, backward_orders
from autockpt.passes.planners.decide import Decision, pose, resolve
from autockpt.passes.planners.frontier import PLANNERS, Frontier
from autockpt.passes.planners.refine import DryRunFailed, DryRunPeak
from autockpt.passes.problem import BrokenPlan, Budget, Outcome, Plan, Problem, Setup, gc_paused, verify

FROM_FILE = "from a file"
"""The method of such a candidate."""


def decide_fixed(
    graph: JointGraph,
    plan: Plan,
    setup: Setup,
    measured: Mapping[str, float] | None = None,
    workspaces: Mapping[str, int] | None = None,
    method: str = FROM_FILE,
) -> Decision:
    """The decision for this plan of this graph. Raises BrokenPlan where it would not compute the same gradients."""
    started = time.perf_counter()
    with gc_paused():
        frontier = Frontier(pose(graph, setup, measured, workspaces), PLANNERS[setup.planner], setup.solve_seconds)
        _verify(frontier.problem, plan)
        candidate = frontier.space.evaluator.evaluate(plan, method)
        budget_bytes = resolve(setup.budget, frontier)
        if setup.budget.fraction == 1.0:
            # The whole range up to the fastest plan: whatever this plan needs.
            budget_bytes = max(budget_bytes, candidate.peak_bytes)
        return Decision(
            problem=frontier.problem,
            outcome=_outcome(candidate.peak_bytes, budget_bytes),
            budget_bytes=budget_bytes,
            planning_seconds=time.perf_counter() - started,
            frontier=frontier,
            candidate=candidate,
        )


def check_fixed(decision: Decision, budget: Budget, dry_run: DryRunPeak) -> Decision:
    """The same decision after a dry run of its plan. Raises DryRunFailed where that fails."""
    try:
        run = dry_run(decision.candidate)
    except Exception as error:
        raise DryRunFailed from error
    budget_bytes = decision.budget_bytes
    if budget.fraction is not None and decision.outcome is not Outcome.OVER_BUDGET:
        # A fraction is taken between two forecasts: a plan whose forecast is within it fits.
        budget_bytes = max(budget_bytes, run.needed_bytes)
    return replace(
        decision, outcome=_outcome(run.needed_bytes, budget_bytes), budget_bytes=budget_bytes, dry_runs=(run,)
    )


def _outcome(needed_bytes: int, budget_bytes: int) -> Outcome:
    return Outcome.FITS if needed_bytes <= budget_bytes else Outcome.OVER_BUDGET


def _verify(problem: Problem, plan: Plan) -> None:
    """All that our own plans promise, and what only a foreign plan can get wrong."""
    graph = problem.graph
    for name in plan.backward:
        if graph.by_name[name].role.is_graph_input:
            raise BrokenPlan(f"`{name}` is a graph input and cannot be recomputed")
    verify(problem, plan)
    _check_reads(graph, plan)
    _check_order(graph, plan)


def _check_reads(graph: JointGraph, plan: Plan) -> None:
    """Every recomputation is read: torch would remove one that is not, and the plan would not be what runs."""
    read = set(graph.backward_outputs)
    for name in reversed(plan.backward):
        value = graph.by_name[name]
        if value.role is Role.FORWARD and name not in read:
            raise BrokenPlan(f"`{name}` is computed in the backward but not read there")
        read.discard(name)
        read.update(value.inputs)


def _check_order(graph: JointGraph, plan: Plan) -> None:
    """A backward with side effects runs as it was traced."""
    orders = backward_orders(graph)
    if len(orders) > 1:
        return
    position = {name: number for number, name in enumerate(orders[0])}
    backward = [name for name in plan.backward if graph.by_name[name].role is Role.BACKWARD]
    for before, after in pairwise(backward):
        if position[before] > position[after]:
            raise BrokenPlan(f"`{after}` would run in another order than it was traced in, beside side effects")
