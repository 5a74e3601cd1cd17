"""Plan -> forward and backward modules. The only writer of fx."""

from __future__ import annotations

from collections.abc import Sequence

from torch import fx
from torch.fx.node import map_arg

from autockpt.passes.problem import Plan


class UnwritablePlan(Exception):
    """The plan names an operation that the backward graph cannot hold."""


def unroll(joint: fx.GraphModule, plan: Plan, num_forward_outputs: int) -> tuple[fx.GraphModule, tuple[str, ...]]:
    """The joint module with a node for every run of an operation, and the names of those of the backward.

    torch takes a value either from the forward or from the backward. One that is saved and, later, computed again is
    both, and so is one that is computed twice. Without either, the joint module as it is.
    """
    if len(set(plan.backward)) == len(plan.backward) and plan.saved.isdisjoint(plan.backward):
        return joint, plan.backward
    nodes = {node.name: node for node in joint.graph.nodes}
    output = next(iter(joint.graph.find_nodes(op="output")))
    outputs = output.args[0]
    graph = fx.Graph()
    made: dict[str, fx.Node] = {}
    # The whole forward, what it writes to included: torch takes out what nobody needs.
    for node in joint.graph.nodes:
        if node.op != "output" and not _needs_tangents(node, made):
            made[node.name] = graph.node_copy(node, lambda source: made[source.name])
    given = {name for name, node in nodes.items() if node.op in ("placeholder", "get_attr")}
    newest = {name: made[name] for name in given | plan.saved}
    sequence = []
    for name in plan.backward:
        if name not in nodes:
            raise UnwritablePlan(f"`{name}` is planned for the backward but is not in the joint graph")
        newest[name] = graph.node_copy(nodes[name], lambda source: newest[source.name])
        sequence.append(newest[name].name)
    first = map_arg(list(outputs[:num_forward_outputs]), lambda node: made[node.name])
    rest = map_arg(list(outputs[num_forward_outputs:]), lambda node: newest[node.name])
    graph.output([*first, *rest]).meta = dict(output.meta)
    graph.lint()
    return fx.GraphModule(joint, graph), tuple(sequence)


def _needs_tangents(node: fx.Node, made: dict[str, fx.Node]) -> bool:
    """Whether an operation is the backward's own: by what it reads, or because torch says so."""
    if node.meta.get("partitioner_tag") == "must_be_in_backward":
        return True
    return any(_is_tangent(source) or source.name not in made for source in node.all_input_nodes)


def _is_tangent(node: fx.Node) -> bool:
    return node.op == "placeholder" and "tangents" in str(node.target)


def reorder(module: fx.GraphModule, sequence: Sequence[str]) -> fx.GraphModule:
    """The same module with its operations in this order, each as often as it is named there."""
    known = {node.name: node for node in module.graph.nodes}
    graph = fx.Graph()
    newest: dict[str, fx.Node] = {}
    for node in module.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            newest[node.name] = graph.node_copy(node)
    for name in sequence:
        if name not in known:
            raise UnwritablePlan(f"`{name}` is planned for the backward but torch did not put it there")
        newest[name] = graph.node_copy(known[name], lambda node: newest[node.name])
    output = next(iter(module.graph.find_nodes(op="output")))
    graph.node_copy(output, lambda node: newest[node.name])
    graph.lint()
    return fx.GraphModule(module, graph)
