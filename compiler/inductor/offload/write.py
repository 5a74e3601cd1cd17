"""Writes the copies of a plan into its two modules.

In the forward, the copy out of a value starts as soon as it is computed, and the computation waits for it where the
plan frees the value. In the backward, the copy in starts where the plan says, and is waited for before its first use.
What crosses is the tensor on the host, in the place of the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import getitem
from typing import Any

from torch import fx

from autockpt.inductor.aot import Modules
from autockpt.offload import OFFLOAD, RELOAD, WAIT
from autockpt.passes.problem import BrokenPlan, Offload, Plan


def write_offloads(modules: Modules, plan: Plan) -> Modules:
    """The modules with all copies; themselves, where nothing is offloaded."""
    if not plan.offloaded:
        return modules
    forward, backward = modules
    on_host = _write_forward(forward, plan.offloaded)
    _write_backward(backward, plan.offloaded, on_host)
    for module in modules:
        module.graph.lint()
        module.recompile()
    return modules


def _write_forward(module: fx.GraphModule, offloads: Sequence[Offload]) -> dict[str, fx.Node]:
    """Returns the nodes of the tensors on the host, which are returned instead of the values."""
    nodes = {node.name: node for node in module.graph.nodes}
    output = next(iter(module.graph.find_nodes(op="output")))
    positions = {node: number for number, node in enumerate(module.graph.nodes)}
    hosts = {}
    for offload in offloads:
        source = nodes[offload.name]
        with module.graph.inserting_after(source):
            hosts[offload.name] = _call(module.graph, OFFLOAD, (source,), f"{offload.name}_out")
    found = {}
    for offload in offloads:
        source, host = nodes[offload.name], hosts[offload.name]
        released = max(source, nodes[offload.release_after], key=positions.__getitem__)
        late = [user for user in source.users if positions.get(user, 0) > positions[released] and user is not output]
        if late:
            raise BrokenPlan(f"`{offload.name}` is read by `{late[0].name}` after it was offloaded")
        with module.graph.inserting_after(_behind_copies(released)):
            found[offload.name] = _call(module.graph, WAIT, (host, source), f"{offload.name}_host")
    saved = {nodes[name]: ready for name, ready in found.items()}
    output.args = fx.node.map_arg(output.args, lambda node: saved.get(node, node))
    return found


def _behind_copies(node: fx.Node) -> fx.Node:
    """The last of the nodes that start copies right behind this one: they start before anything is waited for."""
    while node.next.op == "call_function" and node.next.target in (OFFLOAD, getitem):
        node = node.next
    return node


def _write_backward(module: fx.GraphModule, offloads: Sequence[Offload], on_host: Mapping[str, fx.Node]) -> None:
    graph = module.graph
    calls = [node for node in graph.nodes if node.op == "call_function"]
    positions = {node: number for number, node in enumerate(graph.nodes)}
    placeholders = {node.name: node for node in graph.find_nodes(op="placeholder")}
    firsts = {o.name: min(placeholders[o.name].users, key=positions.__getitem__) for o in offloads}
    started = {}
    # All copies that start at one operation, before anything that is waited for there; the first needed goes first.
    for offload in sorted(offloads, key=lambda o: (o.reload_before, positions[firsts[o.name]], o.name)):
        placeholder, host = placeholders[offload.name], on_host[offload.name]
        with graph.inserting_before(placeholder):
            moved = graph.create_node("placeholder", host.name, name=host.name)
        moved.meta = {**placeholder.meta, "val": host.meta["val"]}
        before = min(calls[offload.reload_before], firsts[offload.name], key=positions.__getitem__)
        with graph.inserting_before(before):
            device = placeholder.meta["val"].device
            started[offload.name] = _call(graph, RELOAD, (moved, device), f"{offload.name}_in"), moved
    for offload in offloads:
        placeholder = placeholders[offload.name]
        with graph.inserting_before(firsts[offload.name]):
            ready = _call(graph, WAIT, started[offload.name], f"{offload.name}_back")
        placeholder.replace_all_uses_with(ready)
        graph.erase_node(placeholder)


def _call(graph: fx.Graph, operator: Any, arguments: Sequence[Any], name: str) -> fx.Node:
    node = graph.create_node("call_function", operator, tuple(arguments), name=name)
    examples = [argument.meta["val"] if isinstance(argument, fx.Node) else argument for argument in arguments]
    node.meta["val"] = operator(*examples)
    return node
