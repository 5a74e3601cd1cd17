"""Results of `nested_compile_region` that are views of its operands, taken from the operands instead.

The forward of a region (`invoke_subgraph`) returns what its backward needs, weights and inputs among it, as they are or
as views. Such a result has no bytes of its own, so it cannot be saved, and its operator would have to run again to
recompute it. Applied to the operand, a view costs nothing, and the operand's bytes are counted once.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from operator import attrgetter

import torch
from torch import fx

_OPERANDS = 2
"""Position of the first operand of `invoke_subgraph`, after the subgraph and its identifier."""


def take_views_from_operands(joint: fx.GraphModule) -> None:
    """Replace results of regions that are views of operands; dead nodes are removed."""
    changed = False
    for call in [node for node in joint.graph.nodes if str(node.target) == "invoke_subgraph"]:
        for result in [user for user in call.users if user.target is operator.getitem]:
            changed |= _replace(joint, call, result)
    if changed:
        joint.graph.lint()


def _replace(joint: fx.GraphModule, call: fx.Node, result: fx.Node) -> bool:
    body = attrgetter(str(call.args[0].target))(joint)  # type: ignore[union-attr]  # a get_attr node
    outputs = next(iter(body.graph.find_nodes(op="output"))).args[0]
    inner = outputs[result.args[1]]
    views = list(_views_to_operand(inner)) if isinstance(inner, fx.Node) else [inner]
    if not views or not isinstance(views[-1], fx.Node) or views[-1].op != "placeholder":
        return False
    placeholders = list(body.graph.find_nodes(op="placeholder"))
    taken = call.args[_OPERANDS + placeholders.index(views[-1])]
    if not isinstance(taken, fx.Node):
        return False
    with joint.graph.inserting_before(result):
        for view in reversed(views[:-1]):
            taken = _applied(joint.graph, view, taken, result)
    result.replace_all_uses_with(taken)
    joint.graph.erase_node(result)
    return True


def _views_to_operand(node: fx.Node) -> Iterator[fx.Node]:
    """A value inside a region and what it is a view of, step by step, as far as views of one tensor go."""
    yield node
    while node.op == "call_function" and _is_view(node) and node.all_input_nodes == [node.args[0]]:
        node = node.args[0]  # type: ignore[assignment]  # the one node that it reads
        yield node


def _is_view(node: fx.Node) -> bool:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
        return False
    returned = target._schema.returns
    return len(returned) == 1 and returned[0].alias_info is not None


def _applied(graph: fx.Graph, view: fx.Node, operand: fx.Node, result: fx.Node) -> fx.Node:
    taken = graph.call_function(view.target, (operand, *view.args[1:]), view.kwargs)  # type: ignore[arg-type]  # an OpOverload
    taken.meta = dict(result.meta)
    taken.meta["val"] = view.target(operand.meta["val"], *view.args[1:], **view.kwargs)  # type: ignore[operator]  # as above
    return taken
