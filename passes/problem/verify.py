"""Checks that a plan can run and computes the right gradients. A plan that fails one is a bug of ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set

from autockpt.passes.graph import Role, collective_order
from autockpt.passes.problem.offload import broken_offload
from autockpt.passes.problem.plan import Plan, Problem
from autockpt.passes.problem.schedule import planned_collectives


class BrokenPlan(Exception):
    """A plan, or the modules written from it, would not compute the right gradients."""


def verify(problem: Problem, plan: Plan) -> None:
    """Raise BrokenPlan unless the plan can run and respects its problem's constraints."""
    values = problem.graph.by_name
    require_none(plan.saved & problem.unsavable, "is saved but may not be")
    not_forward = {name for name in plan.saved if values[name].role is not Role.FORWARD}
    require_none(not_forward, "is saved but is not a forward value")
    again = {name for name in plan.backward if name in problem.must_save}
    require_none(again, f"is must-save but recomputed ({problem.must_save[min(again)]})" if again else "")
    _verify_order(problem, plan)
    counts = Counter(plan.backward)
    twice = {name for name, count in counts.items() if count > 1 and values[name].role is Role.BACKWARD}
    require_none(twice, "is a backward operation that runs twice")
    # Dead backward operations may be left out, but side effects may not.
    effects = {name for name, value in values.items() if value.role is Role.BACKWARD and value.traits}
    require_none(effects - set(plan.backward), "is a backward operation that never runs")
    wanted = planned_collectives(problem)
    if wanted is not None and collective_order(problem.graph, plan.backward) != wanted:
        raise BrokenPlan("other collectives run in the backward than on other ranks, or in another order")
    if fault := broken_offload(problem, plan):
        raise BrokenPlan(fault)


def _verify_order(problem: Problem, plan: Plan) -> None:
    values = problem.graph.by_name
    available = {name for name, value in values.items() if value.role.is_graph_input} | plan.saved
    for name in plan.backward:
        missing = {source for source in values[name].inputs if source not in available}
        require_none(missing, f"is read by {name} before it is available")
        available.add(name)
    require_none(set(problem.graph.backward_outputs) - available, "is an output that is never computed")


def require_none(offenders: Set[str], fault: str) -> None:
    """Raise BrokenPlan that names the first of these values, if there are any."""
    if offenders:
        more = f", and {len(offenders) - 1} more" if len(offenders) > 1 else ""
        raise BrokenPlan(f"`{min(offenders)}` {fault}{more}")
