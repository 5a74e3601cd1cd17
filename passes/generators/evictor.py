"""Eviction steps: lower the peak of a plan by dropping live values there and recomputing them before their next use.

Each step takes live values at the peak with the most bytes per second of recomputation, frees them after their last use
before the peak and inserts what is missing for them before their next use (the idea of dynamic tensor
rematerialisation, Kirisame et al. 2020, here on a replay before anything runs). A value may be evicted more than once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from autockpt.passes.forecast import Content, Peak, Simulator
from autockpt.passes.graph import Kind, Role
from autockpt.passes.problem import Plan, PlanWriter, Problem

_EVICTABLE = (Content.SAVED, Content.RECOMPUTED)
_GROUPS = 3
"""Groups of values that are tried in each step; the one that leaves the lowest peak is evicted."""
_LEAST_SHARE = 0.01
"""Of the peak: the least bytes of a group; more where few steps must halve the peak."""
_MAX_STEPS_WITHOUT_GAIN = 8
_LEAST_SECONDS = 1e-12


class Evictor:
    """Eviction steps for plans of one problem."""

    def __init__(self, problem: Problem, simulator: Simulator, writer: PlanWriter) -> None:
        self._problem, self._simulator, self._writer = problem, simulator, writer
        self._values = problem.graph.by_name
        self._reads = {v.name: self._without_views(v.inputs) for v in problem.graph.values if v.kind is not Kind.VIEW}
        self._position = {value.name: number for number, value in enumerate(problem.graph.values)}

    def _without_views(self, names: Sequence[str]) -> tuple[str, ...]:
        """The values that these are views of, without graph inputs and symbols, which are always available."""
        found: dict[str, None] = {}
        for name in names:
            value = self._values[name]
            if value.kind is Kind.VIEW:
                found.update(dict.fromkeys(self._without_views(value.inputs)))
            elif not value.role.is_graph_input and value.kind is not Kind.SYMBOL:
                found[name] = None
        return tuple(found)

    def __call__(self, plan: Plan, steps: int) -> Iterator[tuple[Plan, int]]:
        """The plan after each step, with its peak bytes; ends where no eviction lowers the peak any more."""
        sequence = self._operations(plan)
        at_peak = lowest = self._simulator.at_peak(plan)
        without_gain, share = 0, max(_LEAST_SHARE, 0.5 / max(steps, 1))
        for _ in range(steps):
            tried = [(plan, self._simulator.at_peak(plan)) for plan in self._evicted(sequence, at_peak, share)]
            if not tried or without_gain == _MAX_STEPS_WITHOUT_GAIN:
                return
            plan, at_peak = min(tried, key=lambda one: one[1].live_bytes)
            without_gain = 0 if at_peak.live_bytes < lowest.live_bytes else without_gain + 1
            lowest = min(lowest, at_peak, key=lambda peak: peak.live_bytes)
            sequence = self._operations(plan)
            yield plan, at_peak.live_bytes

    def _operations(self, plan: Plan) -> list[str]:
        return [name for name in plan.backward if self._values[name].kind is not Kind.VIEW]

    def _evicted(self, sequence: list[str], at_peak: Peak, share: float) -> Iterator[Plan]:
        """Plans with one group of values evicted, the group with the most bytes per second first."""
        moment = _occurrence(sequence, at_peak.operation, at_peak.run) if at_peak.in_backward else -1
        uses = _Uses(sequence, self._reads)
        live = [(entry.name, entry.nbytes) for entry in at_peak.live if entry.content in _EVICTABLE]
        found = [eviction for name, nbytes in live if (eviction := self._eviction(name, nbytes, moment, uses))]
        for group in islice(_groups(found, at_peak.live_bytes * share), _GROUPS):
            changed = list(sequence)
            for eviction in sorted(group, key=lambda eviction: -eviction.before):
                changed[eviction.before : eviction.before] = eviction.recomputed
            yield self._writer.write(changed)

    def _eviction(self, name: str, nbytes: int, moment: int, uses: _Uses) -> _Eviction | None:
        """How to free this value at this moment; None where it is not read later or may not be recomputed."""
        if not nbytes or self._values[name].role is not Role.FORWARD:
            return None
        next_read = uses.next_read(name, moment)
        if next_read is None or uses.made_between(name, moment, next_read):
            return None
        missing = self._missing(name, next_read, uses)
        if missing is None:
            return None
        seconds = sum(self._problem.seconds[missed] for missed in missing)
        return _Eviction(nbytes, nbytes / max(seconds, _LEAST_SECONDS), next_read, missing)

    def _missing(self, name: str, at: int, uses: _Uses) -> list[str] | None:
        """What has to run, in order, to have this value at that position; None where some of it must be saved."""
        found: dict[str, None] = {}
        stack = [name]
        while stack:
            wanted = stack.pop()
            if wanted in found:
                continue
            if wanted in self._problem.must_save:
                return None
            found[wanted] = None
            stack += [source for source in self._reads[wanted] if source in found or not uses.is_held(source, at, name)]
        return sorted(found, key=self._position.__getitem__)


class _Uses:
    """Positions in a backward with recomputations at which each value is made and read."""

    def __init__(self, sequence: Sequence[str], reads: dict[str, tuple[str, ...]]) -> None:
        self._made: dict[str, list[int]] = {}
        self._read: dict[str, list[int]] = {}
        for number, name in enumerate(sequence):
            self._made.setdefault(name, []).append(number)
            for source in reads[name]:
                self._read.setdefault(source, []).append(number)

    def next_read(self, name: str, after: int) -> int | None:
        reads = self._read.get(name, [])
        number = bisect_right(reads, after)
        return reads[number] if number < len(reads) else None

    def made_between(self, name: str, after: int, before: int) -> bool:
        made = self._made.get(name, [])
        return bisect_right(made, after) != bisect_left(made, before)

    def is_held(self, name: str, at: int, without: str) -> bool:
        """Whether a value is live there in any case: it is read there or later, before it is made again."""
        if name == without:
            return False
        read = self.next_read(name, at - 1)
        return read is not None and not self.made_between(name, at - 1, read)


@dataclass(frozen=True)
class _Eviction:
    nbytes: int
    bytes_per_second: float
    before: int
    """Position of the next read."""
    recomputed: list[str]
    """What runs before it."""


def _groups(found: Iterable[_Eviction], nbytes: float) -> Iterator[list[_Eviction]]:
    """Evictions by bytes per second, in groups of at least so many bytes."""
    group: list[_Eviction] = []
    for eviction in sorted(found, key=lambda eviction: -eviction.bytes_per_second):
        group.append(eviction)
        if sum(eviction.nbytes for eviction in group) >= nbytes:
            yield group
            group = []
    if group:
        yield group


def _occurrence(sequence: Sequence[str], name: str, run: int) -> int:
    """Position of the run-th occurrence of an operation, or of its last."""
    places = [number for number, found in enumerate(sequence) if found == name]
    return places[min(run, len(places) - 1)] if places else -1
