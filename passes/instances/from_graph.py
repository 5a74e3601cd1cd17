"""A joint graph as an instance, for runtimes that fuse nothing: every value occupies memory, as in eager mode.

`to_plan` converts the recomputations of an instance back. Of the graph's values:

- A view is replaced by the value whose storage it shares.
- Parameters and inputs are neither operations nor counted. The tangents are one last forward operation whose result is
  an output. The forward's outputs are outputs of the instance, so they are never recomputed.
- What the backward has to compute itself runs in the instance's backward, once, just before its first use: values that
  only the backward reads, and those tagged to be recomputed. A value whose input cannot be saved is not recomputed.
  (A mask that only the backward reads could be saved, at the end of the forward; an instance does not consider that.)
- An operation with several results that runs once becomes one operation for each result (`_add_results`). One that may
  be recomputed stays a single operation with the bytes of all its results. So an instance may count more bytes than
  the graph needs, never fewer, and only where such results are not read equally long.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autockpt.passes.graph import Kind, Role
from autockpt.passes.instances.instance import Instance
from autockpt.passes.problem import Problem


@dataclass(frozen=True, slots=True)
class Naming:
    """The values that each operation of an instance computes.

    Empty for the tangents, for the last read of outputs, and for all but one of an operation's separate results.
    """

    names: tuple[tuple[str, ...], ...]
    boundary: int


@dataclass(frozen=True, slots=True)
class _Operation:
    names: tuple[str, ...]
    reads: tuple[int, ...]
    nbytes: int = 0
    workspace: int = 0
    must_save: bool = True
    is_output: bool = False


def instance_of(problem: Problem, order: Sequence[str]) -> tuple[Instance, Naming]:
    """The instance whose backward runs in this order.

    Its peak is the eager forecast's, less parameters, inputs and static bytes.
    """
    reader = _Reader(problem)
    reader.read_forward()
    boundary = len(reader.operations)
    reader.read_backward(order)
    operations = reader.operations
    instance = Instance(
        costs=np.array([sum(problem.seconds[name] for name in o.names) for o in operations], dtype=np.float64),
        nbytes=np.array([o.nbytes for o in operations], dtype=np.int64),
        reads=tuple(o.reads for o in operations),
        boundary=boundary,
        must_save=np.array([o.must_save for o in operations], dtype=np.bool_),
        is_output=np.array([o.is_output for o in operations], dtype=np.bool_),
        workspace=np.array([o.workspace for o in operations], dtype=np.int64),
    )
    return instance, Naming(tuple(o.names for o in operations), boundary)


class _Reader:
    def __init__(self, problem: Problem) -> None:
        self._problem, self._graph = problem, problem.graph
        self._without_views = _WithoutViews(problem)
        self._position = {value.name: number for number, value in enumerate(problem.graph.values)}
        self._latest: dict[str, int] = {}
        """The operation that computed each value last: the backward's, where the backward computes it too."""
        self._in_backward: set[str] = set()
        self._outputs: frozenset[str] = frozenset()
        """Of the pass that is being read."""
        self.operations: list[_Operation] = []

    def read_forward(self) -> None:
        self._outputs = frozenset(self._without_views.values_behind(self._graph.forward_outputs))
        for value in self._graph.values:
            if value.name in self._without_views.forward and value.kind is not Kind.PART:
                names = self._without_views.with_parts(value.name, self._without_views.forward)
                self._add(names, once=self._runs_once(names))
        tangents = {v.storage for v in self._graph.values if v.role is Role.TANGENT and v.storage}
        nbytes = sum(self._graph.bytes[owner] for owner in tangents)
        self.operations.append(_Operation((), (), nbytes, is_output=True))

    def read_backward(self, order: Sequence[str]) -> None:
        boundary = len(self.operations)
        self._outputs = frozenset(self._without_views.values_behind(self._graph.backward_outputs))
        for name in order:
            if self._graph.by_name[name].kind not in (Kind.VIEW, Kind.PART):
                self._compute_in_backward(self._without_views.inputs_of(name))
                self._add(self._without_views.with_parts(name, self._position), once=True)
        self._compute_in_backward(self._outputs)
        from_forward = {self._latest[name] for name in self._outputs if self._latest[name] < boundary}
        if from_forward:
            self.operations.append(_Operation((), tuple(sorted(from_forward))))

    def _runs_once(self, names: tuple[str, ...]) -> bool:
        if any(name in self._outputs or name in self._problem.must_save for name in names):
            return True
        return not self._without_views.backward.isdisjoint(self._without_views.inputs_of(names[0]))

    def _add(self, names: tuple[str, ...], once: bool) -> None:
        """The operation that computes these values, the first of which is the operation itself."""
        reads = tuple(sorted({self._latest[name] for name in self._without_views.inputs_of(names[0])}))
        owned = {name: self._graph.bytes[name] for name in names if self._graph.by_name[name].owns_bytes}
        workspace = (self._problem.workspace or {}).get(names[0], 0)
        if once and len(owned) > 1:
            self._add_results(names, reads, owned, workspace)
            return
        is_output = not self._outputs.isdisjoint(names)
        self._append(names, _Operation(names, reads, sum(owned.values()), workspace, once, is_output))

    def _add_results(
        self, names: tuple[str, ...], reads: tuple[int, ...], owned: Mapping[str, int], workspace: int
    ) -> None:
        """One operation for each result, so that each is freed after its own last read.

        All but the last only allocate: they have no names, and so cost nothing. The last one is the operation. A
        result that nothing reads is freed at once, but it is live while the operation runs, like workspace.
        """
        *others, last = owned
        for name in others:
            self._append((name,), _Operation((), reads, owned[name], is_output=name in self._outputs))
        unread = [name for name in others if not self._graph.readers[name] and name not in self._outputs]
        workspace += sum(owned[name] for name in unread)
        operation = _Operation(names, reads, owned[last], workspace, is_output=last in self._outputs)
        self._append((names[0], last), operation)

    def _append(self, computed: Iterable[str], operation: _Operation) -> None:
        self._latest.update(dict.fromkeys(computed, len(self.operations)))
        self.operations.append(operation)

    def _compute_in_backward(self, needed: Iterable[str]) -> None:
        """Add what the backward has to compute itself, and has not yet, of these values and of what they read."""
        missing: set[str] = set()
        pending = list(needed)
        while pending:
            name = pending.pop()
            operation = self._without_views.operation_of(name)
            is_missing = name in self._without_views.backward and name not in self._in_backward
            if is_missing and operation not in missing:
                missing.add(operation)
                pending += self._without_views.inputs_of(operation)
        for operation in sorted(missing, key=self._position.__getitem__):
            names = self._without_views.with_parts(operation, self._without_views.backward)
            self._in_backward.update(names)
            self._add(names, once=True)


class _WithoutViews:
    """The values of a graph that are computed, without views, by the pass that computes them."""

    def __init__(self, problem: Problem) -> None:
        graph = problem.graph
        self._graph, self._values = graph, graph.by_name
        needed = graph.cone(sorted(graph.backward_reads))
        in_forward = graph.required_forward | graph.cone(sorted(needed & set(problem.must_save)))
        computed = {v.name for v in graph.values if v.role is Role.FORWARD and v.kind is not Kind.VIEW}
        parts = {name for name in computed - problem.unsavable if self.operation_of(name) in in_forward}
        self.forward = frozenset((computed & in_forward) | parts)
        """What the forward computes whatever is saved: for its outputs, and for values that must be saved."""
        unsavable = {name for name in problem.unsavable if self._values[name].owns_bytes}
        self.backward = (computed - self.forward) | unsavable
        """What the backward has to compute itself. The forward may compute it too, but it cannot be saved."""

    def operation_of(self, name: str) -> str:
        """The value that stands for the operation which computes this one."""
        value = self._values[name]
        return value.inputs[0] if value.kind is Kind.PART else name

    def with_parts(self, name: str, among: Container[str]) -> tuple[str, ...]:
        """An operation, and those of its separate results that are among these."""
        parts = [reader for reader in self._graph.readers[name] if self._values[reader].kind is Kind.PART]
        return (name, *(part for part in parts if part in among))

    def values_behind(self, names: Iterable[str]) -> list[str]:
        """These values with views replaced by their bases; with a result that is written in place, also its storage."""
        found: dict[str, None] = {}
        pending = list(names)
        while pending:
            value = self._values[pending.pop()]
            if value.kind is Kind.VIEW:
                pending.extend(value.inputs)
            elif not value.role.is_graph_input and value.name not in found:
                found[value.name] = None
                if value.storage and not value.owns_bytes:
                    pending.append(value.storage)
        return list(found)

    def inputs_of(self, name: str) -> list[str]:
        return self.values_behind(self._values[name].inputs)
