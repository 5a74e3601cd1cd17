"""From a plan downwards: at the peak, let go of what is not read for a while, and compute it again when it is.

Each step takes the live value with the most bytes for each second of its recomputation, drops it after its last use
before the peak and inserts what is missing for it before its next (the idea of dynamic tensor rematerialisation:
Kirisame et al. 2020, here on a replay, before anything runs). A value may go more than once. Seconds only grow on the
way down, so the first plan of the way that fits a budget is the fastest of them that does.

A way down by evictions, walked only as far as somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from autockpt.passes.forecast import Candidate, Content, Peak, Simulator
from autockpt.passes.graph import Kind, Role
from autockpt.passes.instances import write_plan
from autockpt.passes.problem import Plan, Problem

_GOES = (Content.SAVED, Content.RECOMPUTED)
_WAYS = 3
"""Groups of values that are tried in each step; the one that leaves the lowest peak goes."""
_SHARE = 0.01
"""Of the peak: what a group has at least; more where there are few steps to go down by half."""
_VAIN = 8
"""Steps without a lower peak after which a way ends."""
_NOTHING = 1e-12


class Evictor:
    """Ways down of one problem."""

    def __init__(self, problem: Problem, simulator: Simulator) -> None:
        self._problem, self._simulator = problem, simulator
        self._values = problem.graph.by_name
        self._reads = {v.name: self._bases(v.inputs) for v in problem.graph.values if v.kind is not Kind.VIEW}
        self._position = {value.name: number for number, value in enumerate(problem.graph.values)}

    def _bases(self, names: Sequence[str]) -> tuple[str, ...]:
        """What is behind these values when views are looked through; nothing for what is given."""
        found: dict[str, None] = {}
        for name in names:
            value = self._values[name]
            if value.kind is Kind.VIEW:
                found.update(dict.fromkeys(self._bases(value.inputs)))
            elif not value.role.is_graph_input and value.kind is not Kind.SYMBOL:
                found[name] = None
        return tuple(found)

    def __call__(self, plan: Plan, steps: int) -> Iterator[tuple[Plan, int]]:
        """One plan after each step, with its peak; ends where nothing helps any more."""
        sequence = [name for name in plan.backward if self._values[name].kind is not Kind.VIEW]
        at_peak = lowest = self._simulator.at_peak(plan)
        vain, share = 0, max(_SHARE, 0.5 / max(steps, 1))
        for _ in range(steps):
            tried = [self._try(plan) for plan in self._ways(sequence, at_peak, share)]
            if not tried or vain == _VAIN:
                return
            plan, at_peak = min(tried, key=lambda way: way[1].live_bytes)
            vain = 0 if at_peak.live_bytes < lowest.live_bytes else vain + 1
            lowest = min(lowest, at_peak, key=lambda peak: peak.live_bytes)
            sequence = [name for name in plan.backward if self._values[name].kind is not Kind.VIEW]
            yield plan, at_peak.live_bytes

    def _ways(self, sequence: list[str], at_peak: Peak, share: float) -> Iterator[Plan]:
        """The sequence with some values let go, those with the most bytes a second together first."""
        moment = _occurrence(sequence, at_peak.operation, at_peak.run) if at_peak.in_backward else -1
        state = _Sequence(sequence, self._reads)
        found: list[_Going] = []
        for live in at_peak.live:
            if live.content not in _GOES or self._values[live.name].role is not Role.FORWARD or not live.nbytes:
                continue
            after = state.next_read(live.name, moment)
            if after is None or state.made_between(live.name, moment, after):
                continue
            missing = self._missing(live.name, after, state)
            if missing is not None:
                seconds = sum(self._problem.seconds[name] for name in missing)
                found.append(_Going(live.nbytes, live.nbytes / max(seconds, _NOTHING), after, missing))
        for group in islice(_groups(found, at_peak.live_bytes * share), _WAYS):
            changed = list(sequence)
            for going in sorted(group, key=lambda going: -going.after):
                changed[going.after : going.after] = going.missing
            yield write_plan(self._problem, changed)

    def _try(self, plan: Plan) -> tuple[Plan, Peak]:
        return plan, self._simulator.at_peak(plan)

    def _missing(self, name: str, at: int, state: _Sequence) -> list[str] | None:
        """What has to run, in order, to have this value anew; None where something of it may not."""
        found: dict[str, None] = {}
        ahead = [name]
        while ahead:
            wanted = ahead.pop()
            if wanted in found:
                continue
            if wanted in self._problem.must_save:
                return None
            found[wanted] = None
            ahead += [
                source for source in self._reads[wanted] if source in found or not state.is_held(source, at, name)
            ]
        return sorted(found, key=self._position.__getitem__)


class _Sequence:
    """When each value is made and read in a backward with recomputations."""

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
        """Whether a value is at hand there anyway: read there or later before it is made again."""
        if name == without:
            return False
        read = self.next_read(name, at - 1)
        return read is not None and not self.made_between(name, at - 1, read)


@dataclass(frozen=True)
class _Going:
    """A value that could go, and what has to run before its next read."""

    nbytes: int
    bytes_a_second: float
    after: int
    missing: list[str]


def _groups(found: Iterable[_Going], nbytes: float) -> Iterator[list[_Going]]:
    """In order of worth, each with at least so many bytes."""
    group: list[_Going] = []
    for going in sorted(found, key=lambda going: -going.bytes_a_second):
        group.append(going)
        if sum(going.nbytes for going in group) >= nbytes:
            yield group
            group = []
    if group:
        yield group


def _occurrence(sequence: Sequence[str], name: str, run: int) -> int:
    places = [number for number, found in enumerate(sequence) if found == name]
    return places[min(run, len(places) - 1)] if places else -1


_WORK = 60_000
"""Values that are replayed in a way, all steps together: a larger graph gets fewer steps."""


class Way:
    def __init__(
        self, problem: Problem, simulator: Simulator, start: Plan, make: Callable[[Plan, int], Candidate]
    ) -> None:
        count = len(problem.graph.values)
        self._steps = Evictor(problem, simulator)(start, _WORK // count)
        self._make = make
        # With as much recomputation as one more forward, nested plans take over.
        self._most_seconds = sum(problem.seconds[name] for name in problem.graph.required_forward)
        self.candidates: list[Candidate] = []
        """So far, those with a lower peak than all before them; each slower than the one before."""
        self._lowest_bytes: list[int] = []

    def first_within(self, budget_bytes: int, seconds: float) -> Candidate | None:
        """The fastest of the way that fits, if it is faster than this."""
        for candidate, peak_bytes in zip(self.candidates, self._lowest_bytes, strict=True):
            if peak_bytes <= budget_bytes:
                return candidate
        most = min(seconds, self._most_seconds)
        while not self.candidates or self.candidates[-1].recompute_seconds < most:
            if (step := next(self._steps, None)) is None:
                return None
            plan, peak_bytes = step
            if self._lowest_bytes and peak_bytes >= self._lowest_bytes[-1]:
                continue
            self.candidates.append(self._make(plan, peak_bytes))
            self._lowest_bytes.append(peak_bytes)
            if peak_bytes <= budget_bytes:
                return self.candidates[-1]
        return None
