"""The retention intervals of a joint graph, and the bytes that a replayed plan holds besides its saved values.

Moments are the operations of the forward, then those of the backward, in order; a recomputation belongs to the backward
operation that it runs for. Values are storages: a view counts as its base. The slack for saved values at a moment is
the budget less all other bytes that a replayed plan holds there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from autockpt.passes.forecast import FusedPass, Simulator
from autockpt.passes.graph import Booleans, Floats, Integers, Kind, Role, Value
from autockpt.passes.intervals.values import Intervals
from autockpt.passes.problem import Plan, Problem, unavoidable_bytes


@dataclass(frozen=True, eq=False)
class _Uses:
    """Arrays with one entry for each forward value."""

    last_forward: Integers
    """Moment of the last forward operation that reads or makes the value."""
    first_backward: Integers
    """Moment of the first backward operation that reads it; the number of moments where none does."""
    pairs: Integers
    """(u, v) in each row: forward value v is computed from u."""
    readers: tuple[tuple[int, ...], ...]
    """The forward values that are computed from each value."""


class IntervalGraph:
    """The intervals of one problem with one order of its backward."""

    def __init__(self, problem: Problem, order: Sequence[str]) -> None:
        graph = problem.graph
        self._problem = problem
        forward = [v.name for v in graph.values if v.role is Role.FORWARD and v.name in graph.required_forward]
        self.operations: tuple[Sequence[str], Sequence[str]] = forward, order
        """Of both passes, one for each moment."""
        self.boundary = len(forward)
        self._moment = {name: number for number, name in enumerate(forward)}
        self._moment |= {name: self.boundary + number for number, name in enumerate(order)}
        self.moments = self.boundary + len(order)
        self.names = [v.name for v in graph.values if v.role is Role.FORWARD and not _is_view(v)]
        self._number = {name: number for number, name in enumerate(self.names)}
        self._base = {v.name: v.storage if _is_view(v) else v.name for v in graph.values}

    @cached_property
    def intervals(self) -> Intervals:
        """A saved value that the backward does not read itself is held until all that is computed from it is done."""
        uses = self._uses
        return Intervals(
            recompute_seconds=np.array([self._recompute_seconds(name) for name in self.names]),
            nbytes=np.array([self._nbytes(name) for name in self.names]),
            first_moment=uses.last_forward + 1,
            last_moment=self._last_needed(uses) - 1,
            reads=uses.pairs,
            needed_by_backward=self._needed_by_backward(uses),
        )

    @cached_property
    def shortest_intervals(self) -> Intervals:
        """The same with each interval only as long as it is in every plan, for a bound that holds for all of them.

        A value that the backward does not read itself may have done its work as soon as the first of all values that
        derive from it, over any number of steps, is read.
        """
        return replace(self.intervals, last_moment=self._first_needed(self._uses) - 1)

    @cached_property
    def made(self) -> Integers:
        """The moment of the forward that computes each value; the last one for those that only the backward needs."""
        return np.array([self._moment.get(name, self.boundary - 1) for name in self.names], dtype=np.int64)

    @cached_property
    def _uses(self) -> _Uses:
        graph, count = self._problem.graph, len(self.names)
        last_forward = np.array([self._moment.get(name, self.boundary - 1) for name in self.names])
        first_backward = np.full(count, self.moments)
        pairs: dict[tuple[int, int], None] = {}
        for value in graph.values:
            base = self._base[value.name]
            for read in dict.fromkeys(self._base[name] for name in value.inputs):
                source = self._number.get(read)
                if source is None or base == read:
                    continue
                if value.role is Role.BACKWARD:
                    moment = self._moment.get(value.name, self.moments)
                    first_backward[source] = min(first_backward[source], moment)
                    continue
                last_forward[source] = max(last_forward[source], self._moment.get(value.name, -1))
                if (target := self._number.get(base)) is not None:
                    pairs[source, target] = None
        for name in graph.backward_outputs:
            if (source := self._number.get(self._base[name])) is not None:
                first_backward[source] = min(first_backward[source], self.moments - 1)
        readers: list[list[int]] = [[] for _ in range(count)]
        for source, target in pairs:
            readers[source].append(target)
        rows = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
        return _Uses(last_forward, first_backward, rows, tuple(map(tuple, readers)))

    def _needed_by_backward(self, uses: _Uses) -> Booleans:
        needed = uses.first_backward < self.moments
        numbers = [self._number.get(self._base[name]) for name in self._problem.needed_by_backward]
        needed[[number for number in numbers if number is not None]] = True
        return needed

    def _last_needed(self, uses: _Uses) -> Integers:
        """The moment after which each value is not needed: its first read by the backward, or, without one, the
        latest such moment of the values computed from it, which it may have to be there for."""
        needed = [self.boundary] * len(self.names)
        for value in reversed(range(len(needed))):
            if (first := int(uses.first_backward[value])) < self.moments:
                needed[value] = first
            else:
                needed[value] = max((needed[reader] for reader in uses.readers[value]), default=self.boundary)
        return np.array(needed)

    def _first_needed(self, uses: _Uses) -> Integers:
        """The same with the earliest first read of all values that derive from it."""
        own_reads: list[int] = uses.first_backward.tolist()
        earliest = own_reads.copy()
        for value in reversed(range(len(earliest))):
            earliest[value] = min(earliest[value], *(earliest[reader] for reader in uses.readers[value]), self.moments)
        chosen = [own if own < self.moments else below for own, below in zip(own_reads, earliest, strict=True)]
        return np.array([moment if moment < self.moments else self.boundary for moment in chosen])

    def _recompute_seconds(self, name: str) -> float:
        if name in self._problem.must_save:
            return np.inf
        return self._problem.seconds[name] if name in self._problem.graph.required_forward else 0.0

    def _nbytes(self, name: str) -> float:
        value = self._problem.graph.by_name[name]
        if name in self._problem.unsavable:
            return np.inf
        if value.kind is Kind.SYMBOL or name in self._problem.graph.output_storages:
            return 0.0
        return float(self._problem.graph.bytes_of(name))

    @cached_property
    def unavoidable_bytes(self) -> Floats:
        """Bytes that every plan holds at each moment."""
        return unavoidable_bytes(self._problem, self._moment, self.boundary, self.moments)

    def live_and_other_bytes(self, simulator: Simulator, plan: Plan) -> tuple[Floats, Floats]:
        """Bytes of a replayed plan at each moment: all that are live, and those that are not of saved values."""
        live = np.zeros(self.moments)
        for replayed in simulator.passes(plan):
            live_bytes = replayed.live_bytes()
            during = [live_bytes[kernel.launch] for kernel in replayed.fused.kernels]
            np.maximum.at(live, self._moments_of(replayed.fused), during)
        return live, live - self._saved_bytes(plan.saved)

    def _moments_of(self, fused: FusedPass) -> list[int]:
        """The moment of each kernel of a pass: that of its operation, or for a recomputation the next kernel's."""
        values = self._problem.graph.values
        operations = [values[kernel.operation] for kernel in fused.kernels]
        in_backward = any(operation.role is Role.BACKWARD for operation in operations)
        role = Role.BACKWARD if in_backward else Role.FORWARD
        moments: list[int | None] = []
        reached = -1
        for operation in operations:
            if operation.role is not role:
                moments.append(None)
                continue
            # Kernels are named after their first operation; fusion may put that behind operations of later moments.
            reached = max(reached, self._moment.get(operation.name, -1))
            moments.append(reached if reached >= 0 else None)
        found: list[int] = []
        following = self.moments - 1 if in_backward else self.boundary - 1
        for moment in reversed(moments):
            following = following if moment is None else moment
            found.append(following)
        return found[::-1]

    def _saved_bytes(self, saved: Iterable[str]) -> Floats:
        """Bytes of saved values whose interval contains each moment."""
        intervals = self.intervals
        numbers = np.array(sorted(self._number[name] for name in saved), dtype=np.int64)
        numbers = numbers[~intervals.free_to_save[numbers]]
        change = np.zeros(self.moments + 1)
        np.add.at(change, intervals.first_moment[numbers], intervals.nbytes[numbers])
        np.add.at(change, intervals.last_moment[numbers] + 1, -intervals.nbytes[numbers])
        return np.cumsum(change)[:-1]


def _is_view(value: Value) -> bool:
    return bool(value.storage) and not value.owns_bytes
