"""What runs in a joint graph when views are looked through, and where: in the forward, or in the backward only."""

from __future__ import annotations

from collections.abc import Container, Iterable

from autockpt.passes.graph import Kind, Role
from autockpt.passes.problem import Problem


class Collapsed:
    def __init__(self, problem: Problem) -> None:
        graph = problem.graph
        self._graph, self._values = graph, graph.by_name
        needed = graph.cone(sorted(graph.backward_reads))
        early = graph.required_forward | graph.cone(sorted(needed & set(problem.must_save)))
        made = {v.name for v in graph.values if v.role is Role.FORWARD and v.kind is not Kind.VIEW}
        parts = {name for name in made - problem.unsavable if self.maker(name) in early}
        self.early = frozenset((made & early) | parts)
        """What the forward runs whatever is saved: for its outputs, and for what may not run in the backward."""
        self.late = (made - self.early) | {name for name in problem.unsavable if self._values[name].owns_bytes}
        """What the backward must make itself; some of it the forward makes, too, but may not hand over."""

    def maker(self, name: str) -> str:
        """The value whose operation makes this one."""
        value = self._values[name]
        return value.inputs[0] if value.kind is Kind.PART else name

    def with_parts(self, name: str, among: Container[str]) -> tuple[str, ...]:
        """An operation and those of its results that are taken out of it one by one."""
        parts = [reader for reader in self._graph.readers[name] if self._values[reader].kind is Kind.PART]
        return (name, *(part for part in parts if part in among))

    def behind(self, names: Iterable[str]) -> list[str]:
        """The values that are made, behind these or their views; the storage of a result that is written into, too."""
        found: dict[str, None] = {}
        ahead = list(names)
        while ahead:
            value = self._values[ahead.pop()]
            if value.kind is Kind.VIEW:
                ahead.extend(value.inputs)
            elif not value.role.is_graph_input and value.name not in found:
                found[value.name] = None
                if value.storage and not value.owns_bytes:
                    ahead.append(value.storage)
        return list(found)

    def read_by(self, name: str) -> list[str]:
        return self.behind(self._values[name].inputs)
