"""From the operations that a backward runs to a plan: views taken again where they are read, what is missing saved.

Hot: eviction descents and plans that are filled up write a plan for every step that they try. So what is known of each
value is listed once for a problem, by its position in the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autockpt.passes.graph import Kind, Role
from autockpt.passes.problem.plan import Plan, Problem


class PlanWriter:
    """Writes many plans of one problem."""

    def __init__(self, problem: Problem) -> None:
        graph, values = problem.graph, problem.graph.values
        self._position = {value.name: number for number, value in enumerate(values)}
        self._names = [value.name for value in values]
        self._inputs = [self._numbers(value.inputs) for value in values]
        self._bases = [self._numbers(graph.bases[value.name]) for value in values]
        self._outputs = self._numbers(graph.backward_outputs)
        self._is_view = [value.kind is Kind.VIEW for value in values]
        self._is_forward = [value.role is Role.FORWARD for value in values]
        self._is_size = [value.role is Role.FORWARD and value.kind is Kind.SYMBOL for value in values]
        self._storage = [self._position.get(value.storage, -1) for value in values]
        self._given = bytearray(value.role.is_graph_input for value in values)

    def write(self, sequence: Sequence[str]) -> Plan:
        """The plan whose backward runs these values in order, without views and without what nothing reads."""
        numbers = self._without_unread([self._position[name] for name in sequence])
        return self._plan((number,) for number in numbers)

    def write_operations(self, operations: Iterable[Sequence[str]]) -> Plan:
        """The plan whose backward runs these operations; the first name of each runs, and all of them are computed."""
        return self._plan(self._numbers(names) for names in operations if names)

    def _numbers(self, names: Iterable[str]) -> tuple[int, ...]:
        return tuple(self._position[name] for name in names)

    def _without_unread(self, sequence: list[int]) -> list[int]:
        """Without recomputations whose result nothing reads before it is computed again, or at all."""
        needed = bytearray(len(self._names))
        for output in self._outputs:
            for base in self._bases[output]:
                needed[base] = True
        found = []
        for number in reversed(sequence):
            if self._is_forward[number] and not needed[number]:
                continue
            found.append(number)
            needed[number] = False
            for source in self._inputs[number]:
                for base in self._bases[source]:
                    needed[base] = True
        found.reverse()
        return found

    def _plan(self, operations: Iterable[tuple[int, ...]]) -> Plan:
        """A view is taken just before its first read of every newly computed storage."""
        available, backward, saved = bytearray(self._given), list[int](), set[int]()
        views: dict[int, list[int]] = {}
        for computed in operations:
            for source in self._inputs[computed[0]]:
                if not available[source]:
                    self._fetch(source, available, backward, saved, views)
            backward += computed
            for number in computed:
                available[number] = True
                for view in views.pop(number, ()):
                    available[view] = False
        for output in self._outputs:
            if not available[output]:
                self._fetch(output, available, backward, saved, views)
        names = self._names
        return Plan(frozenset(names[number] for number in saved), tuple(names[n] for n in self._read(backward)))

    def _fetch(
        self, number: int, available: bytearray, backward: list[int], saved: set[int], views: dict[int, list[int]]
    ) -> None:
        """Make a value available: take a view again, save any other."""
        if self._is_view[number]:
            for source in self._inputs[number]:
                if not available[source]:
                    self._fetch(source, available, backward, saved, views)
            backward.append(number)
            views.setdefault(self._storage[number], []).append(number)
        else:
            saved.add(number)
        available[number] = True

    def _read(self, backward: list[int]) -> list[int]:
        """What was written, without dynamic sizes that nothing reads: torch would remove them from the backward.

        A size may be computed again after the only view that is taken with it.
        """
        if not any(self._is_size[number] for number in backward):
            return backward
        read, found = set(self._outputs), []
        for number in reversed(backward):
            if not self._is_size[number] or number in read:
                found.append(number)
                read.discard(number)
                read.update(self._inputs[number])
        found.reverse()
        return found
