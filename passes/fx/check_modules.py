"""The promises of the two modules that are written from a plan. A broken one is a bug of ours, never the user's."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import fx

from autockpt.passes.fx.read import is_number
from autockpt.passes.problem import BrokenPlan, Plan, require_none


def verify_modules(joint: fx.GraphModule, plan: Plan, forward: fx.GraphModule, backward: fx.GraphModule) -> None:
    """Raise unless the two modules do what the plan says, operation by operation."""
    targets = {node.name: node.target for node in joint.graph.nodes}
    written = [node.target for node in backward.graph.nodes if node.op == "call_function"]
    planned = [targets[name] for name in plan.backward if callable(targets[name])]
    if written != planned:
        raise BrokenPlan(f"the backward has {len(written)} operations where the plan has {len(planned)}, or others")
    # Sizes that depend on data cross by themselves, wherever a saved tensor has one.
    crossing = {n.name for n in backward.graph.nodes if n.op == "placeholder" and not is_number(n)}
    made: Callable[[str], bool] = lambda name: name in targets and callable(targets[name])  # noqa: E731
    require_none({name for name in crossing if made(name)} - plan.saved, "reaches the backward but is not saved")
    in_backward = set(plan.backward)
    # What the forward writes to, batch statistics and the like, must not get lost.
    writes = [node.target for node in joint.graph.nodes if node.name not in in_backward and _is_mutable(node)]
    if writes != [node.target for node in forward.graph.nodes if _is_mutable(node)]:
        raise BrokenPlan("the forward does not write to all that it should, or not in order")
    returned = {node.name for node in next(iter(forward.graph.find_nodes(op="output"))).all_input_nodes}
    require_none({name for name in crossing if made(name)} - returned, "is read by the backward but not returned")


def _is_mutable(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable
