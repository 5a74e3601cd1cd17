"""From what a task runs again back to a plan: kept is what the backward reads before it makes it, if it ever does."""

from __future__ import annotations

from collections.abc import Iterable

from autockpt.passes.joint import Kind
from autockpt.passes.plan import Plan, Problem
from autockpt.passes.task import Again
from autockpt.passes.task_of import Naming


def plan_of(problem: Problem, naming: Naming, again: Again) -> Plan:
    """Views are taken anew of every new storage, just before they are read."""
    writer = _Writer(problem)
    for number, more in enumerate(again):
        for operation in (*more, naming.turn + number):
            writer.run(naming.names[operation])
    writer.fetch(problem.graph.backward_outputs)
    return Plan(frozenset(writer.kept), tuple(writer.backward))


def write_plan(problem: Problem, sequence: Iterable[str]) -> Plan:
    """The same from the backward without its views."""
    writer = _Writer(problem)
    for name in sequence:
        writer.run((name,))
    writer.fetch(problem.graph.backward_outputs)
    return Plan(frozenset(writer.kept), tuple(writer.backward))


class _Writer:
    def __init__(self, problem: Problem) -> None:
        self._graph = problem.graph
        self._at_hand = {value.name for value in problem.graph.values if value.role.is_given}
        self._views: dict[str, list[str]] = {}
        """Of each storage, as it is now."""
        self.kept: set[str] = set()
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
                self.kept.add(name)
            self._at_hand.add(name)
