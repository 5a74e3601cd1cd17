"""A joint graph as a instance: every value becomes bytes, as in eager mode. `plan_of` is the way back.

Views count as what they show. Parameters and inputs are no operations and are not counted. Tangents are a last forward
operation that stays, and so do the forward's outputs, which never run again.

What the backward must make itself is made in the instance's backward, once, just before its first use: values that only
the backward asks for, and those tagged to be recomputed. A mask that could be saved is not: the forward would make it
at its very end. What reads something that cannot be saved does not run again.

An operation with several results that runs once is several operations, one for each result; the last of them runs, the
others only make room. One that may run again is a single operation with all the bytes: so a instance may hold more than the
graph would, never less, and only where such an operation has results that are not read equally long.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autockpt.passes.graph import Kind, Role
from autockpt.passes.instances.instance import Instance
from autockpt.passes.problem import Problem


@dataclass(frozen=True, slots=True)
class Naming:
    """The values that each operation of a instance runs; none for tangents, for the end, and for what only makes room."""

    names: tuple[tuple[str, ...], ...]
    boundary: int


@dataclass(frozen=True, slots=True)
class _Operation:
    names: tuple[str, ...]
    reads: tuple[int, ...]
    nbytes: int = 0
    scratch: int = 0
    must_save: bool = True
    stays: bool = False


def instance_of(problem: Problem, order: Sequence[str]) -> tuple[Instance, Naming]:
    """For the backward in this order. Its peak is the eager forecast's, less parameters, inputs and standing bytes."""
    reader = _Reader(problem)
    reader.read_forward()
    boundary = len(reader.operations)
    reader.read_backward(order)
    made = reader.operations
    instance = Instance(
        costs=np.array([sum(problem.seconds[name] for name in o.names) for o in made], dtype=np.float64),
        nbytes=np.array([o.nbytes for o in made], dtype=np.int64),
        reads=tuple(o.reads for o in made),
        boundary=boundary,
        must_save=np.array([o.must_save for o in made], dtype=np.bool_),
        stays=np.array([o.stays for o in made], dtype=np.bool_),
        scratch=np.array([o.scratch for o in made], dtype=np.int64),
    )
    return instance, Naming(tuple(o.names for o in made), boundary)


class _Reader:
    def __init__(self, problem: Problem) -> None:
        self._problem, self._graph = problem, problem.graph
        self._collapsed = Collapsed(problem)
        self._position = {value.name: number for number, value in enumerate(problem.graph.values)}
        self._made: dict[str, int] = {}
        """The operation that made each value last: the backward's, where the backward makes it too."""
        self._remade: set[str] = set()
        self._ends: frozenset[str] = frozenset()
        self.operations: list[_Operation] = []

    def read_forward(self) -> None:
        self._ends = frozenset(self._collapsed.behind(self._graph.forward_outputs))
        for value in self._graph.values:
            if value.name in self._collapsed.early and value.kind is not Kind.PART:
                names = self._collapsed.with_parts(value.name, self._collapsed.early)
                self._add(names, once=self._runs_once(names))
        tangents = {v.storage for v in self._graph.values if v.role is Role.TANGENT and v.storage}
        self.operations.append(_Operation((), (), sum(self._graph.bytes[owner] for owner in tangents), stays=True))

    def read_backward(self, order: Sequence[str]) -> None:
        boundary = len(self.operations)
        self._ends = frozenset(self._collapsed.behind(self._graph.backward_outputs))
        for name in order:
            if self._graph.by_name[name].kind not in (Kind.VIEW, Kind.PART):
                self._make_late(self._collapsed.read_by(name))
                self._add(self._collapsed.with_parts(name, self._position), once=True)
        self._make_late(self._ends)
        handed = tuple(sorted({self._made[name] for name in self._ends if self._made[name] < boundary}))
        if handed:
            self.operations.append(_Operation((), handed))

    def _runs_once(self, names: tuple[str, ...]) -> bool:
        banned = self._ends | set(self._problem.must_save)
        return not banned.isdisjoint(names) or not self._collapsed.late.isdisjoint(self._collapsed.read_by(names[0]))

    def _add(self, names: tuple[str, ...], once: bool) -> None:
        sources = tuple(sorted({self._made[name] for name in self._collapsed.read_by(names[0])}))
        owned = {name: self._graph.bytes[name] for name in names if self._graph.by_name[name].owns_bytes}
        scratch = (self._problem.workspace or {}).get(names[0], 0)
        stays = not self._ends.isdisjoint(names)
        last = _Operation(names, sources, sum(owned.values()), scratch, must_save=once, stays=stays)
        if once and len(owned) > 1:
            *others, final = owned
            for name in others:
                self._made[name] = len(self.operations)
                self.operations.append(_Operation((), sources, owned[name], stays=name in self._ends))
            # What nobody reads is allocated all the same.
            idle = sum(owned[name] for name in others if not self._graph.readers[name] and name not in self._ends)
            last = replace(last, nbytes=owned[final], scratch=scratch + idle, stays=final in self._ends)
            names = (names[0], final)
        self._made.update(dict.fromkeys(names, len(self.operations)))
        self.operations.append(last)

    def _make_late(self, wanted: Iterable[str]) -> None:
        """In the backward, before it is read: what is late and not made there, and what is late and missing for it."""
        missing: set[str] = set()
        ahead = list(wanted)
        while ahead:
            name = ahead.pop()
            maker = self._collapsed.maker(name)
            if name in self._collapsed.late and name not in self._remade and maker not in missing:
                missing.add(maker)
                ahead += self._collapsed.read_by(maker)
        for maker in sorted(missing, key=self._position.__getitem__):
            names = self._collapsed.with_parts(maker, self._collapsed.late)
            self._remade.update(names)
            self._add(names, once=True)


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
