"""Plan -> fx graphs: a node for every run of an operation, the backward in the order of the plan; and their check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import getitem
from typing import Any

import torch
from torch import fx
from torch.fx.node import map_arg

from autockpt.passes.fx.read import is_number
from autockpt.passes.problem import BrokenPlan, Plan, require_none


class UnwritablePlan(Exception):
    """The plan names an operation that is not in the graph it is to be written into."""


Check = Callable[[fx.Graph, str, fx.Node, fx.Node], fx.Node | None]
"""Adds a node that compares a value of the forward with its recomputation, and returns what is read from then on."""
_COPIED_META = ("val", "tensor_meta", "stack_trace", "nn_module_stack")


def compare_by(operator: Any, labels: Mapping[str, str]) -> Check:
    """`operator(computed, recomputed, label)` for every value with a label."""

    def check(graph: fx.Graph, name: str, computed: fx.Node, recomputed: fx.Node) -> fx.Node | None:
        if name not in labels:
            return None
        compared = graph.call_function(operator, (computed, recomputed, labels[name]))
        # Not all of it: Inductor keeps the traced arguments of custom operators there, to restore their strides.
        compared.meta = {key: value for key, value in recomputed.meta.items() if key in _COPIED_META}
        return compared

    return check


def unroll(
    joint: fx.GraphModule, plan: Plan, num_forward_outputs: int, check: Check | None = None
) -> tuple[fx.GraphModule, tuple[str, ...]]:
    """A joint module with one node for every run of an operation, and the names of the backward's nodes in order.

    torch's extraction assigns each node of a joint graph to the forward or to the backward. A value that is saved and
    later recomputed, or recomputed twice, needs several nodes. Without such values the joint module is returned as is.
    With `check`, every recomputation may be followed by a comparison with the value of the forward.
    """
    if check is None and len(set(plan.backward)) == len(plan.backward) and plan.saved.isdisjoint(plan.backward):
        return joint, plan.backward
    nodes = {node.name: node for node in joint.graph.nodes}
    output = next(iter(joint.graph.find_nodes(op="output")))
    outputs = output.args[0]
    graph = fx.Graph()
    in_forward: dict[str, fx.Node] = {}
    # All of the forward, mutations included: torch's extraction removes what is not used.
    for node in joint.graph.nodes:
        if node.op != "output" and not _is_of_backward(node, in_forward):
            in_forward[node.name] = graph.node_copy(node, lambda source: in_forward[source.name])
    graph_inputs = {name for name, node in nodes.items() if node.op in ("placeholder", "get_attr")}
    latest = {name: in_forward[name] for name in graph_inputs | plan.saved}
    sequence = []
    for name in plan.backward:
        if name not in nodes:
            raise UnwritablePlan(f"`{name}` is planned for the backward but is not in the joint graph")
        latest[name] = graph.node_copy(nodes[name], lambda source: latest[source.name])
        sequence.append(latest[name].name)
        if check and name in in_forward and (checked := check(graph, name, in_forward[name], latest[name])):
            latest[name] = checked
            sequence.append(checked.name)
    first = map_arg(list(outputs[:num_forward_outputs]), lambda node: in_forward[node.name])
    rest = map_arg(list(outputs[num_forward_outputs:]), lambda node: latest[node.name])
    graph.output([*first, *rest]).meta = dict(output.meta)
    graph.lint()
    return fx.GraphModule(joint, graph), tuple(sequence)


def _is_of_backward(node: fx.Node, in_forward: dict[str, fx.Node]) -> bool:
    """Whether an operation depends on tangents, or torch tagged it as one of the backward."""
    if node.meta.get("partitioner_tag") == "must_be_in_backward":
        return True
    return any(_is_tangent(source) or source.name not in in_forward for source in node.all_input_nodes)


def _is_tangent(node: fx.Node) -> bool:
    return node.op == "placeholder" and "tangents" in str(node.target)


def reorder(module: fx.GraphModule, sequence: Sequence[str]) -> fx.GraphModule:
    """The same module with its operations in this order, one node for each occurrence of a name."""
    known = {node.name: node for node in module.graph.nodes}
    graph = fx.Graph()
    latest: dict[str, fx.Node] = {}
    for node in module.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            latest[node.name] = graph.node_copy(node)
    for name in sequence:
        if name not in known:
            raise UnwritablePlan(f"`{name}` is planned for the backward but torch did not put it there")
        latest[name] = graph.node_copy(known[name], lambda node: latest[node.name])
    output = next(iter(module.graph.find_nodes(op="output")))
    graph.node_copy(output, lambda node: latest[node.name])
    graph.lint()
    return fx.GraphModule(module, graph)


def raise_parts(module: fx.GraphModule) -> None:
    """Take results out of their tuple right behind the operation that returns it: a tuple holds all of them until the
    last one is taken out, and a part that is read late would hold those that are read before."""
    last: dict[fx.Node, fx.Node] = {}
    is_moved = False
    for node in module.graph.find_nodes(op="call_function", target=getitem):
        of = node.args[0]
        before = last.get(of, of)
        if before.next is not node:
            before.append(node)
            is_moved = True
        last[of] = node
    if is_moved:
        module.recompile()


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
