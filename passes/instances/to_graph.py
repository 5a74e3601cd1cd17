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

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from autockpt.cost_models import Work
from autockpt.passes.graph import JointGraph, Kind, Role, Trait, Value
from autockpt.passes.instances.from_graph import Naming
from autockpt.passes.instances.instance import Instance, Recomputations
from autockpt.passes.problem import Plan, Problem

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
    writer = _Writer(problem)
    for number, operations in enumerate(recomputed):
        for operation in (*operations, naming.boundary + number):
            writer.run(naming.names[operation])
    return writer.plan()


def write_plan(problem: Problem, sequence: Sequence[str]) -> Plan:
    """The plan whose backward runs these values in order, without views and without recomputations nothing reads."""
    writer = _Writer(problem)
    for name in _without_unread(problem, sequence):
        writer.run((name,))
    return writer.plan()


def _without_unread(problem: Problem, sequence: Sequence[str]) -> list[str]:
    """The sequence without recomputations whose result nothing reads before it is computed again, or at all."""
    values, bases = problem.graph.by_name, problem.graph.bases
    needed = {base for name in problem.graph.backward_outputs for base in bases[name]}
    found = []
    for name in reversed(sequence):
        if values[name].role is Role.FORWARD and name not in needed:
            continue
        found.append(name)
        needed.discard(name)
        needed.update(base for source in values[name].inputs for base in bases[source])
    found.reverse()
    return found


class _Writer:
    """The backward as it is written. A view is taken just before its first read of every newly computed storage."""

    def __init__(self, problem: Problem) -> None:
        self._graph = problem.graph
        self._available = {value.name for value in problem.graph.values if value.role.is_graph_input}
        self._views: dict[str, list[str]] = {}
        """The views taken so far of each storage as it was computed last."""
        self._saved: set[str] = set()
        self._backward: list[str] = []

    def run(self, names: tuple[str, ...]) -> None:
        """Run the operation of the first name, which computes all of them."""
        if not names:
            return
        self._fetch(self._graph.by_name[names[0]].inputs)
        self._backward += names
        self._available.update(names)
        for name in names:
            self._available.difference_update(self._views.pop(name, ()))

    def plan(self) -> Plan:
        self._fetch(self._graph.backward_outputs)
        return Plan(frozenset(self._saved), self._read_backward())

    def _read_backward(self) -> tuple[str, ...]:
        """What was written, without dynamic sizes that nothing reads: torch would remove them from the backward.

        A size may be computed again after the only view that is taken with it.
        """
        read = set(self._graph.backward_outputs)
        found = []
        for name in reversed(self._backward):
            value = self._graph.by_name[name]
            if value.role is not Role.FORWARD or value.kind is not Kind.SYMBOL or name in read:
                found.append(name)
                read.discard(name)
                read.update(value.inputs)
        return tuple(reversed(found))

    def _fetch(self, names: Iterable[str]) -> None:
        """Make these values available: take the views again, save the others."""
        for name in names:
            if name in self._available:
                continue
            value = self._graph.by_name[name]
            if value.kind is Kind.VIEW:
                self._fetch(value.inputs)
                self._backward.append(name)
                self._views.setdefault(value.storage, []).append(name)
            else:
                self._saved.add(name)
            self._available.add(name)
