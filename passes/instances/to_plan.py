"""From what a instance runs again back to a plan: saved is what the backward reads before it makes it, if it ever does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autockpt.passes.graph import Kind, Role
from autockpt.passes.instances.from_graph import Naming
from autockpt.passes.instances.instance import Recomputations
from autockpt.passes.problem import Plan, Problem


def plan_of(problem: Problem, naming: Naming, again: Recomputations) -> Plan:
    """Views are taken anew of every new storage, just before they are read."""
    writer = _Writer(problem)
    for number, more in enumerate(again):
        for operation in (*more, naming.boundary + number):
            writer.run(naming.names[operation])
    writer.fetch(problem.graph.backward_outputs)
    return Plan(frozenset(writer.saved), tuple(writer.backward))


def write_plan(problem: Problem, sequence: Sequence[str]) -> Plan:
    """The same from the names of what runs in the backward, views aside. What nobody reads does not run."""
    writer = _Writer(problem)
    for name in _read_runs(problem, sequence):
        writer.run((name,))
    writer.fetch(problem.graph.backward_outputs)
    return Plan(frozenset(writer.saved), tuple(writer.backward))


def _read_runs(problem: Problem, sequence: Sequence[str]) -> list[str]:
    """Without recomputations whose result is made again, or forgotten, before anything reads it."""
    values = problem.graph.by_name
    wanted = {base for name in problem.graph.backward_outputs for base in _behind(problem, name)}
    found = []
    for name in reversed(sequence):
        if values[name].role is Role.FORWARD and name not in wanted:
            continue
        found.append(name)
        wanted.discard(name)
        wanted.update(base for source in values[name].inputs for base in _behind(problem, source))
    found.reverse()
    return found


def _behind(problem: Problem, name: str) -> tuple[str, ...]:
    """A value, or what a view of it is a view of."""
    value = problem.graph.by_name[name]
    if value.kind is not Kind.VIEW:
        return (name,)
    return tuple(base for source in value.inputs for base in _behind(problem, source))


class _Writer:
    def __init__(self, problem: Problem) -> None:
        self._graph = problem.graph
        self._at_hand = {value.name for value in problem.graph.values if value.role.is_graph_input}
        self._views: dict[str, list[str]] = {}
        """Of each storage, as it is now."""
        self.saved: set[str] = set()
        self.backward: list[str] = []

    def run(self, names: tuple[str, ...]) -> None:
        """The first of the names makes the others."""
        if not names:
            return
        self.fetch(self._graph.by_name[names[0]].inputs)
        self.backward += names
        self._at_hand.update(names)
        for name in names:
            self._at_hand.difference_update(self._views.pop(name, ()))

    def fetch(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._at_hand:
                continue
            value = self._graph.by_name[name]
            if value.kind is Kind.VIEW:
                self.fetch(value.inputs)
                self.backward.append(name)
                self._views.setdefault(value.storage, []).append(name)
            else:
                self.saved.add(name)
            self._at_hand.add(name)
