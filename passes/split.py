"""Plan -> forward and backward modules. The only writer of fx."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import fx

from autockpt.passes.partition_tools import Modules, extract, finish
from autockpt.passes.plan import Plan


class UnwritablePlan(Exception):
    """The plan names an operation that the backward graph cannot hold."""


def split(joint: fx.GraphModule, plan: Plan, num_forward_outputs: int, parameter_positions: Iterable[int]) -> Modules:
    """The two modules of a plan, as AOTAutograd expects them."""
    placeholders = [node for node in joint.graph.nodes if node.op == "placeholder"]
    primals = [node for node in placeholders if "primals" in str(node.target)]
    parameters = [primals[position] for position in parameter_positions if position < len(primals)]
    kept = [node for node in joint.graph.nodes if node.name in plan.kept]
    forward, backward = extract(joint, [*primals, *kept], num_forward_outputs, parameters)
    return finish(forward, _in_order(backward, plan.backward))


def _in_order(module: fx.GraphModule, sequence: Sequence[str]) -> fx.GraphModule:
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
