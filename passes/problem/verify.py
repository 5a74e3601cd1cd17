"""The promises of a plan. A broken one is a bug of ours, never the user's."""

from __future__ import annotations

from collections import Counter

from autockpt.passes.graph import Role
from autockpt.passes.problem.plan import Plan, Problem


class BrokenPlan(Exception):
    """A plan or a graph that would not compute the gradients it should."""


def verify(problem: Problem, plan: Plan) -> None:
    """Raise unless the plan can run and breaks no rule of its problem."""
    values = problem.graph.by_name
    refuse(plan.saved & problem.unsavable, "is saved but may not be")
    refuse({name for name in plan.saved if values[name].role is not Role.FORWARD}, "is saved but is no forward value")
    refuse({name for name in plan.backward if name in problem.must_save}, "is must_save but recomputed")
    _runs_in_order(problem, plan)
    counts = Counter(plan.backward)
    twice = {name for name, count in counts.items() if count > 1 and values[name].role is Role.BACKWARD}
    refuse(twice, "is a backward operation that runs twice")
    # Dead backward operations may be left out, but side effects may not.
    effects = {name for name, value in values.items() if value.role is Role.BACKWARD and value.traits}
    refuse(effects - set(plan.backward), "is a backward operation that never runs")


def _runs_in_order(problem: Problem, plan: Plan) -> None:
    values = problem.graph.by_name
    at_hand = {name for name, value in values.items() if value.role.is_graph_input} | plan.saved
    for name in plan.backward:
        missing = [source for source in values[name].inputs if source not in at_hand]
        refuse(set(missing), f"is read by {name} before it is at hand")
        at_hand.add(name)
    refuse(set(problem.graph.backward_outputs) - at_hand, "is an output that is never computed")


def refuse(culprits: set[str] | frozenset[str], why: str) -> None:
    """Raise where any value is at fault."""
    if culprits:
        raise BrokenPlan(f"`{min(culprits)}` {why}" + (f", and {len(culprits) - 1} more" * (len(culprits) > 1)))
