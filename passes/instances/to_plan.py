"""Plans from the operations that the backward runs: a value is saved if the backward reads it before it computes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autockpt.passes.graph import Kind, Role
from autockpt.passes.instances.from_graph import Naming
from autockpt.passes.instances.instance import Recomputations
from autockpt.passes.problem import Plan, Problem


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
    values = problem.graph.by_name
    needed = {base for name in problem.graph.backward_outputs for base in _bases(problem, name)}
    found = []
    for name in reversed(sequence):
        if values[name].role is Role.FORWARD and name not in needed:
            continue
        found.append(name)
        needed.discard(name)
        needed.update(base for source in values[name].inputs for base in _bases(problem, source))
    found.reverse()
    return found


def _bases(problem: Problem, name: str) -> tuple[str, ...]:
    """The value itself, or for a view the values that it is a view of."""
    value = problem.graph.by_name[name]
    if value.kind is not Kind.VIEW:
        return (name,)
    return tuple(base for source in value.inputs for base in _bases(problem, source))


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
