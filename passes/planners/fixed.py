"""A plan from elsewhere in the place of planning: verified, priced and held to the budget, and never changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

from autockpt.passes.forecast import Candidate
from autockpt.passes.graph import JointGraph, Role
from autockpt.passes.planners.decide import Decision, Look, pose, resolve
from autockpt.passes.planners.frontier import Frontier
from autockpt.passes.planners.refine import Unseen
from autockpt.passes.planners.schedule import orders
from autockpt.passes.problem import BrokenPlan, Budget, Outcome, Plan, Problem, Setup, gc_paused, verify

GIVEN = "given"
"""The method of such a candidate."""


def judge(graph: JointGraph, plan: Plan, setup: Setup, measured: Mapping[str, float] | None = None) -> Decision:
    """The decision for this plan of this graph. Raises BrokenPlan where it would not compute the same gradients."""
    started = time.perf_counter()
    with gc_paused():
        frontier = Frontier(pose(graph, setup, measured), setup.planner, setup.solve_seconds)
        _verify(frontier.problem, plan)
        forecast = frontier.simulator.forecast(plan)
        cap = resolve(setup.budget, frontier)
        if setup.budget.fraction == 1.0:
            # The whole of the way from lowest to fastest: whatever the plan takes.
            cap = max(cap, forecast.peak_bytes)
        return Decision(
            problem=frontier.problem,
            plan=plan,
            outcome=_outcome(forecast.peak_bytes, cap),
            forecast=forecast,
            budget_bytes=cap,
            planning_seconds=time.perf_counter() - started,
            frontier=frontier,
            candidate=_candidate(frontier, plan),
        )


def look_at(decision: Decision, budget: Budget, look: Callable[[Plan], int]) -> Decision:
    """The same decision after a look; `look` gives the lowered peak of a plan, parameters and inputs included."""
    try:
        seen = Look(decision.candidate, decision.forecast.peak_bytes, look(decision.plan))
    except Exception as error:
        raise Unseen from error
    cap = decision.budget_bytes
    if budget.fraction is not None and decision.outcome is not Outcome.OVER_BUDGET:
        # A share of the way between two forecasts: a forecast within it stays so, whatever the lowered step adds.
        cap = max(cap, seen.needed_bytes)
    return replace(decision, outcome=_outcome(seen.needed_bytes, cap), budget_bytes=cap, looks=(seen,))


def _outcome(needed_bytes: int, cap: int) -> Outcome:
    return Outcome.FITS if needed_bytes <= cap else Outcome.OVER_BUDGET


def _candidate(frontier: Frontier, plan: Plan) -> Candidate:
    problem, graph = frontier.problem, frontier.problem.graph
    saved_bytes = sum(graph.bytes_of(name) for name in plan.saved if name not in graph.output_storages)
    seconds = frontier.simulator.recompute_seconds(plan)
    return Candidate(
        plan, saved_bytes, seconds, seconds + sum(problem.save_seconds[name] for name in plan.saved), GIVEN
    )


def _verify(problem: Problem, plan: Plan) -> None:
    """All that is asked of our own plans, and what they cannot get wrong."""
    graph = problem.graph
    for name in plan.backward:
        if graph.by_name[name].role.is_graph_input:
            raise BrokenPlan(f"`{name}` is given and cannot be computed")
    verify(problem, plan)
    _check_reads(graph, plan)
    _check_order(graph, plan)


def _check_reads(graph: JointGraph, plan: Plan) -> None:
    """Nothing is computed again in vain: torch would leave it out, and the plan would not be what runs."""
    wanted = set(graph.backward_outputs)
    for name in reversed(plan.backward):
        value = graph.by_name[name]
        if value.role is Role.FORWARD and name not in wanted:
            raise BrokenPlan(f"`{name}` is computed in the backward but not read there")
        wanted.discard(name)
        wanted.update(value.inputs)


def _check_order(graph: JointGraph, plan: Plan) -> None:
    """Where the backward has side effects, it runs as it was traced."""
    possible = orders(graph)
    if len(possible) > 1:
        return
    position = {name: number for number, name in enumerate(possible[0])}
    backward = [name for name in plan.backward if graph.by_name[name].role is Role.BACKWARD]
    for before, after in pairwise(backward):
        if position[before] > position[after]:
            raise BrokenPlan(f"`{after}` would run in another order than it was traced in, beside side effects")
