"""Lower bounds on the bytes that are live at each moment, in every plan.

Always: parameters, inputs and the copies that the lowering makes. From the boundary on: the forward's outputs and the
tangents. From where it is computed: each gradient that the backward returns. While a kernel that cannot fuse runs in
the backward: what it reads and writes. A matmul that Inductor may merge with a following addition is not counted, since
it may run later than where the graph has it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from autockpt.passes.graph import ADDITION, Floats, JointGraph, Kind, Role, Value
from autockpt.passes.problem.plan import Problem


def boundary_bytes(problem: Problem) -> int:
    """Live at the boundary between forward and backward in every plan, saved activations not included."""
    graph = problem.graph
    storages = (graph.output_storages | graph.held_tangents) - {""}
    created = {name for name in storages if graph.by_name[name].role not in (Role.PARAMETER, Role.INPUT)}
    return problem.static_bytes + sum(graph.bytes.get(name, 0) for name in created)


def unavoidable_bytes(problem: Problem, moment: Mapping[str, int], boundary: int, moments: int) -> Floats:
    """For each of so many moments. `moment` says when each operation runs, `boundary` is the first of the backward."""
    graph = problem.graph
    live = np.full(moments, float(problem.static_bytes))
    live[boundary:] = boundary_bytes(problem)
    gradients = {graph.by_name[name].storage for name in graph.backward_outputs} - {""}
    gradients = {name for name in gradients if graph.by_name[name].role is Role.BACKWARD and name in moment}
    for name in gradients:
        live[moment[name] :] += graph.bytes[name]
    for value in graph.values:
        if value.role is Role.BACKWARD and value.kind is Kind.EXTERN and value.name in moment:
            live[moment[value.name]] += _operand_bytes(graph, value, gradients)
    return live


def _operand_bytes(graph: JointGraph, value: Value, gradients: set[str]) -> int:
    """Read or written by a kernel and not counted otherwise; none for a matmul that may be merged with an addition."""
    readers = [graph.by_name[name] for name in graph.readers[value.name]]
    if any(reader.operator == ADDITION for reader in readers):
        return 0
    operands = [value, *graph.parts_of(value.name), *(graph.by_name[name] for name in value.inputs)]
    storages = {operand.storage for operand in operands} - {""}
    computed = {name for name in storages if not graph.by_name[name].role.is_graph_input}
    return sum(graph.bytes.get(name, 0) for name in computed - gradients - graph.output_storages)
