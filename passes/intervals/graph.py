"""A joint graph as a interval program: its values, its moments, and the bytes that a replayed plan holds besides.

Moments are the operations of the forward and then of the backward, in order; what is recomputed belongs to the
backward operation that it is recomputed for. Views are their base. The room for saved values at a moment is the budget
less all that a replayed plan holds there besides them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from autockpt.passes.forecast import FusedPass, Simulator
from autockpt.passes.graph import Booleans, Floats, Integers, Kind, Role, Value
from autockpt.passes.intervals.values import Intervals
from autockpt.passes.problem import Plan, Problem, unavoidable_bytes


class IntervalGraph:
    """The intervals of one problem with one order of its backward."""

    def __init__(self, problem: Problem, order: Sequence[str]) -> None:
        graph = problem.graph
        self._problem = problem
        forward = [v for v in graph.values if v.role is Role.FORWARD and v.name in graph.required_forward]
        self.turn = len(forward)
        self._moment = {value.name: number for number, value in enumerate(forward)}
        self._moment |= {name: self.turn + number for number, name in enumerate(order)}
        self.moments = self.turn + len(order)
        self.names = [v.name for v in graph.values if v.role is Role.FORWARD and not self._is_part_of_another(v)]
        self._number = {name: number for number, name in enumerate(self.names)}
        self._base = {v.name: v.storage if self._is_part_of_another(v) else v.name for v in graph.values}

    @staticmethod
    def _is_part_of_another(value: Value) -> bool:
        return bool(value.storage) and not value.owns_bytes

    @cached_property
    def intervals(self) -> Intervals:
        graph, count = self._problem.graph, len(self.names)
        ends = np.array([self._moment.get(name, self.turn - 1) for name in self.names])
        first = np.full(count, self.moments)
        pairs: dict[tuple[int, int], None] = {}
        for value in graph.values:
            for name in value.inputs:
                source = self._number.get(self._base[name])
                if source is None or self._base[value.name] == self._base[name]:
                    continue
                if value.role is Role.BACKWARD:
                    first[source] = min(first[source], self._moment.get(value.name, self.moments))
                else:
                    ends[source] = max(ends[source], self._moment.get(value.name, -1))
                    if (target := self._number.get(self._base[value.name])) is not None:
                        pairs[source, target] = None
        for name in graph.backward_outputs:
            if (source := self._number.get(self._base[name])) is not None:
                first[source] = min(first[source], self.moments - 1)
        reads = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
        self._first_reads = first
        return Intervals(
            seconds=np.array([self._seconds(name) for name in self.names]),
            nbytes=np.array([self._nbytes(name) for name in self.names]),
            opens=ends + 1,
            # Held until the last that is made from it is made again.
            closes=self._needed(first, reads) - 1,
            reads=reads,
            demanded=self._demanded(first),
        )

    def _demanded(self, first: Integers) -> Booleans:
        asked = first < self.moments
        numbers = [self._number.get(self._base[name]) for name in self._problem.needed_by_backward]
        asked[[number for number in numbers if number is not None]] = True
        return asked

    def _needed(self, first: Integers, reads: Integers) -> Integers:
        """When a saved value has done its work: at its own first read, or when what is made from it is made again."""
        needed = first.tolist()
        later: list[int | None] = [None] * len(needed)
        for source, value in reads[np.lexsort((reads[:, 0], reads[:, 1]))][::-1].tolist():
            if needed[value] == self.moments:
                needed[value] = self.turn if (known := later[value]) is None else known
            so_far = later[source]
            later[source] = needed[value] if so_far is None else max(so_far, needed[value])
        for value, so_far in enumerate(later):
            if needed[value] == self.moments:
                needed[value] = self.turn if so_far is None else so_far
        return np.array(needed)

    @cached_property
    def surest_intervals(self) -> Intervals:
        """The same, each gap only as long as in every plan: what the backward does not read itself may be needed as
        soon as anything is that is made from it, however far down."""
        intervals = self.intervals
        soonest = self._first_reads.tolist()
        for source, value in intervals.reads[np.lexsort((intervals.reads[:, 0], intervals.reads[:, 1]))][::-1].tolist():
            soonest[source] = min(soonest[source], soonest[value])
        needed = np.where(self._first_reads < self.moments, self._first_reads, np.array(soonest, dtype=np.int64))
        return replace(intervals, closes=np.where(needed < self.moments, needed, self.turn) - 1)

    def _seconds(self, name: str) -> float:
        if name in self._problem.must_save:
            return np.inf
        return self._problem.seconds[name] if name in self._problem.graph.required_forward else 0.0

    def _nbytes(self, name: str) -> float:
        value = self._problem.graph.by_name[name]
        if value.kind is Kind.SYMBOL or name in self._problem.graph.output_storages:
            return 0.0
        return np.inf if name in self._problem.unsavable else float(self._problem.graph.bytes_of(name))

    @cached_property
    def unavoidable(self) -> Floats:
        return unavoidable_bytes(self._problem, self._moment, self.turn, self.moments)

    def besides(self, simulator: Simulator, plan: Plan) -> tuple[Floats, Floats]:
        """Of a replayed plan at each moment: bytes live in all, and those that are not saved values in their intervals."""
        live = np.zeros(self.moments)
        for fused, launches in simulator.launches(plan):
            self._spread(fused, launches, live)
        return live, live - self.held(plan.saved)

    def _spread(self, fused: FusedPass, launches: Sequence[int], live: Floats) -> None:
        """Each kernel counts for its own operation, or for the next of the pass that runs after it."""
        values = self._problem.graph.values
        roles = [values[kernel.operation].role for kernel in fused.kernels]
        role = Role.BACKWARD if Role.BACKWARD in roles else Role.FORWARD
        own = [self._moment.get(values[k.operation].name, -1) for k in fused.kernels]
        reached = np.maximum.accumulate([m if r is role else -1 for m, r in zip(own, roles, strict=True)])
        moment = self.moments - 1 if role is Role.BACKWARD else self.turn - 1
        for kernel, at, by in zip(reversed(fused.kernels), reversed(reached.tolist()), reversed(roles), strict=True):
            moment = at if by is role and at >= 0 else moment
            live[moment] = max(live[moment], launches[kernel.launch])

    def held(self, saved: Iterable[str]) -> Floats:
        """Bytes of saved values whose gap contains each moment."""
        change = np.zeros(self.moments + 1)
        intervals = self.intervals
        numbers = np.array(sorted(self._number[name] for name in saved), dtype=np.int64)
        numbers = numbers[~intervals.free_to_save[numbers]]
        np.add.at(change, intervals.opens[numbers], intervals.nbytes[numbers])
        np.add.at(change, intervals.closes[numbers] + 1, -intervals.nbytes[numbers])
        return np.cumsum(change)[:-1]
