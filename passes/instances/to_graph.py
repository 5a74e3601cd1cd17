"""An instance as a joint graph with the same costs, bytes and order, for the planners that `torch.compile` uses.

The graph has exactly the instance's plans, for a runtime that fuses nothing (`Lowering.EAGER`):

- Operation i is the value `f{i}` or `b{i}`. One that reads nothing reads a graph input of no bytes.
- A graph runs in the forward only what a forward output needs, and computes anything else in the backward. In an
  instance every forward operation runs in the forward. So a result that no forward operation reads is read, at once, by
  an operation `used{i}` without cost or bytes, and the forward's output, also without bytes, reads all of these.
- A graph's backward may be reordered, and may leave out what no gradient needs. In an instance it may not. So every
  backward operation is marked as having a side effect.

A plan is made from what the backward runs: a value is saved if the backward reads it before it computes it.

Workspaces are not posed: in a graph they follow from operators and shapes, which an instance does not have.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from autockpt.cost_models import Work
from autockpt.passes.graph import JointGraph, Kind, Role, Trait, Value
from autockpt.passes.instances.from_graph import Naming
from autockpt.passes.instances.instance import Instance, Recomputations
from autockpt.passes.problem import Plan, PlanWriter, Problem

_INPUT, _TANGENT, _END = "input", "tangent", "end_of_forward"


def graph_of(instance: Instance) -> tuple[JointGraph, Mapping[str, float]]:
    """The graph, and the seconds of each of its values."""
    if instance.workspace.any():
        raise ValueError("an instance with workspaces has no graph: operators and shapes would have to give them")
    names = [_name(instance, operation) for operation in range(instance.count)]
    used = {v: f"used{v}" for v in range(instance.boundary) if not _is_read_in_forward(instance, v)}
    values = [_input(_INPUT, Role.INPUT)]
    for operation in range(instance.boundary):
        reads = tuple(names[source] for source in instance.reads[operation]) or (_INPUT,)
        traits = frozenset({Trait.MUST_SAVE}) if instance.must_save[operation] else frozenset()
        values.append(_value(names[operation], Role.FORWARD, reads, traits))
        if operation in used:
            values.append(_value(used[operation], Role.FORWARD, (names[operation],)))
    values.append(_value(_END, Role.FORWARD, tuple(used.values()) or (_INPUT,)))
    values.append(_input(_TANGENT, Role.TANGENT))
    for operation in range(instance.boundary, instance.count):
        reads = (_TANGENT, *(names[source] for source in instance.reads[operation]))
        values.append(_value(names[operation], Role.BACKWARD, reads, frozenset({Trait.EFFECT})))
    outputs = np.flatnonzero(instance.is_output).tolist()
    graph = JointGraph(
        values=tuple(values),
        bytes={value.name: 0 for value in values} | dict(zip(names, instance.nbytes.tolist(), strict=True)),
        forward_outputs=(_END, *(names[v] for v in outputs if v < instance.boundary)),
        backward_outputs=tuple(names[v] for v in outputs if v >= instance.boundary),
    )
    seconds = {value.name: 0.0 for value in values} | dict(zip(names, instance.costs.tolist(), strict=True))
    return graph, seconds


def recomputations_of(instance: Instance, plan: Plan) -> Recomputations:
    """What a plan of the instance's graph recomputes before each backward operation."""
    operation_of = {_name(instance, operation): operation for operation in range(instance.count)}
    recomputed: list[tuple[int, ...]] = []
    before: list[int] = []
    for operation in (operation_of[name] for name in plan.backward if name in operation_of):
        if operation < instance.boundary:
            before.append(operation)
        else:
            recomputed.append(tuple(before))
            before = []
    return tuple(recomputed)


def _name(instance: Instance, operation: int) -> str:
    return f"f{operation}" if operation < instance.boundary else f"b{operation}"


def _is_read_in_forward(instance: Instance, operation: int) -> bool:
    return any(reader < instance.boundary for reader in instance.readers[operation])


def _input(name: str, role: Role) -> Value:
    return Value(name, "placeholder", role, Kind.GRAPH_INPUT, storage=name)


def _value(name: str, role: Role, reads: tuple[str, ...], traits: frozenset[Trait] = frozenset()) -> Value:
    return Value(name, "instance.operation", role, Kind.EXTERN, reads, storage=name, traits=traits, work=Work())


def plan_of(problem: Problem, naming: Naming, recomputed: Recomputations) -> Plan:
    """The plan of an instance's recomputations."""
    return PlanWriter(problem).write_operations(
        naming.names[operation]
        for number, operations in enumerate(recomputed)
        for operation in (*operations, naming.boundary + number)
    )
