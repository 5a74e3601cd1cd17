"""Checks that the forward and backward modules written from a plan do what it says. A failure is a bug of ours."""

from __future__ import annotations

import torch
from torch import fx

from autockpt.passes.fx.read import is_number
from autockpt.passes.problem import BrokenPlan, Plan, require_none


def verify_modules(joint: fx.GraphModule, plan: Plan, forward: fx.GraphModule, backward: fx.GraphModule) -> None:
    """Raise BrokenPlan unless the modules run the plan's operations and pass its saved values."""
    targets = {node.name: node.target for node in joint.graph.nodes}
    written = [node.target for node in backward.graph.nodes if node.op == "call_function"]
    planned = [targets[name] for name in plan.backward if callable(targets[name])]
    if written != planned:
        raise BrokenPlan(f"the backward has {len(written)} operations where the plan has {len(planned)}, or others")
    # Data-dependent sizes of saved tensors cross to the backward too, and are not part of a plan.
    placeholders = (node for node in backward.graph.find_nodes(op="placeholder") if not is_number(node))
    crossing = {node.name for node in placeholders if node.name in targets and callable(targets[node.name])}
    require_none(crossing - plan.saved, "reaches the backward but is not saved")
    in_backward = set(plan.backward)
    # No mutation of the forward, such as an update of batch statistics, may be missing.
    mutations = [node.target for node in joint.graph.nodes if node.name not in in_backward and _is_mutable(node)]
    if mutations != [node.target for node in forward.graph.nodes if _is_mutable(node)]:
        raise BrokenPlan("the forward lacks mutations of the joint graph, or has them in another order")
    returned = {node.name for node in next(iter(forward.graph.find_nodes(op="output"))).all_input_nodes}
    require_none(crossing - returned, "is read by the backward but not returned by the forward")


def _is_mutable(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable
