"""The promises of a plan and of the two graphs written from it. A broken one is a bug of ours, never the user's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import torch
from torch import fx

from autockpt.passes.joint import Role
from autockpt.passes.plan import Plan, Problem
from autockpt.passes.read import is_number


class BrokenPlan(Exception):
    """A plan or a graph that would not compute the gradients it should."""


def verify(problem: Problem, plan: Plan) -> None:
    """Raise unless the plan can run and breaks no rule of its problem."""
    values = problem.graph.by_name
    _refuse(plan.kept & problem.unkeepable, "is kept but may not be")
    _refuse({name for name in plan.kept if values[name].role is not Role.FORWARD}, "is kept but is no forward value")
    _refuse({name for name in plan.backward if name in problem.pinned}, "is pinned but recomputed")
    _runs_in_order(problem, plan)
    counts = Counter(plan.backward)
    twice = {name for name, count in counts.items() if count > 1 and values[name].role is Role.BACKWARD}
    _refuse(twice, "is a backward operation that runs twice")
    # Dead backward operations may be left out, but side effects may not.
    effects = {name for name, value in values.items() if value.role is Role.BACKWARD and value.traits}
    _refuse(effects - set(plan.backward), "is a backward operation that never runs")


def _runs_in_order(problem: Problem, plan: Plan) -> None:
    values = problem.graph.by_name
    at_hand = {name for name, value in values.items() if value.role.is_given} | plan.kept
    for name in plan.backward:
        missing = [source for source in values[name].inputs if source not in at_hand]
        _refuse(set(missing), f"is read by {name} before it is at hand")
        at_hand.add(name)
    _refuse(set(problem.graph.backward_outputs) - at_hand, "is an output that is never computed")


def verify_modules(joint: fx.GraphModule, plan: Plan, forward: fx.GraphModule, backward: fx.GraphModule) -> None:
    """Raise unless the two modules do what the plan says, operation by operation."""
    targets = {node.name: node.target for node in joint.graph.nodes}
    written = [node.target for node in backward.graph.nodes if node.op == "call_function"]
    planned = [targets[name] for name in plan.backward if callable(targets[name])]
    if written != planned:
        raise BrokenPlan(f"the backward has {len(written)} operations where the plan has {len(planned)}, or others")
    # Sizes that depend on data cross by themselves, wherever a kept tensor has one.
    crossing = {n.name for n in backward.graph.nodes if n.op == "placeholder" and not is_number(n)}
    made: Callable[[str], bool] = lambda name: name in targets and callable(targets[name])  # noqa: E731
    _refuse({name for name in crossing if made(name)} - plan.kept, "reaches the backward but is not kept")
    in_backward = set(plan.backward)
    # What the forward writes to, batch statistics and the like, must not get lost.
    writes = [node.target for node in joint.graph.nodes if node.name not in in_backward and _is_mutable(node)]
    if writes != [node.target for node in forward.graph.nodes if _is_mutable(node)]:
        raise BrokenPlan("the forward does not write to all that it should, or not in order")
    returned = {node.name for node in next(iter(forward.graph.find_nodes(op="output"))).all_input_nodes}
    _refuse({name for name in crossing if made(name)} - returned, "is read by the backward but not returned")


def _is_mutable(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _refuse(culprits: set[str] | frozenset[str], why: str) -> None:
    if culprits:
        raise BrokenPlan(f"`{min(culprits)}` {why}" + (f", and {len(culprits) - 1} more" * (len(culprits) > 1)))
