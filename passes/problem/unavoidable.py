"""Bytes that live at each moment in every plan, whatever is saved and whatever is fused.

Parameters, inputs and what the lowering copies; the forward's outputs and the tangents from the turning point on;
every gradient from the moment it is made; and beside them, while a kernel that cannot fuse runs in the backward, what
it reads and what it writes. A matmul that may be merged into a later sum is left out: it may not run where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from autockpt.passes.graph import Floats, JointGraph, Kind, Role, Value
from autockpt.passes.problem.plan import Problem


def boundary_bytes(problem: Problem) -> int:
    """At the turning point, besides what is saved."""
    graph = problem.graph
    outputs = graph.output_storages
    tangents = {value.storage for value in graph.values if value.role is Role.TANGENT}
    made = {
        name for name in outputs | tangents if name and graph.by_name[name].role not in (Role.PARAMETER, Role.INPUT)
    }
    return graph.graph_input_bytes + problem.extra_static_bytes + sum(graph.bytes.get(name, 0) for name in made)


def unavoidable_bytes(problem: Problem, moment: Mapping[str, int], turn: int, moments: int) -> Floats:
    graph = problem.graph
    live = np.full(moments, float(graph.graph_input_bytes + problem.extra_static_bytes))
    live[turn:] = boundary_bytes(problem)
    gradients = {graph.by_name[name].storage for name in graph.backward_outputs}
    gradients = {name for name in gradients if name and graph.by_name[name].role is Role.BACKWARD and name in moment}
    for name in gradients:
        live[moment[name] :] += graph.bytes[name]
    for value in graph.values:
        if value.role is Role.BACKWARD and value.kind is Kind.EXTERN and value.name in moment:
            live[moment[value.name]] += _around(graph, value, gradients)
    return live


def _around(graph: JointGraph, value: Value, counted: set[str]) -> int:
    """What a kernel reads and writes, without what is counted already; nothing for one that may run elsewhere."""
    if any(graph.by_name[reader].operator == "aten.add.Tensor" for reader in graph.readers[value.name]):
        return 0
    parts = [graph.by_name[name] for name in graph.readers[value.name] if graph.by_name[name].kind is Kind.PART]
    around = [value, *parts, *(graph.by_name[name] for name in value.inputs)]
    storages = {
        found.storage for found in around if found.storage and not graph.by_name[found.storage].role.is_graph_input
    }
    outputs = graph.output_storages
    return sum(graph.bytes.get(name, 0) for name in storages - counted - outputs)
