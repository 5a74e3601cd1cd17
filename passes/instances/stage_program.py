"""The stage program: recomputation at chosen stages, any number of times, as an integer program.

Checkmate (Jain et al. 2020) may recompute any forward operation before any backward operation. Here a value may be
recomputed only in its candidate stages, which keeps the program small enough to be solved to a proof. The events of a
value v are its candidate recomputations and its reads, in order of their slots (`schedule.Grid`). With the variables
`R[v,t]` = v is recomputed in stage t and `H[v,i]` = v is held from its event i-1 to its event i:

    minimise   sum costs[v] R[v,t]
    H[v,i] >= 1                       where a backward operation reads v at event i               (`_require`)
    H[v,i] >= R[w,t]                  where event i is the recomputation of w in t, which reads v (`_require`)
    H[v,i] <= H[v,i-1] + R[v,t]       where event i-1 is the recomputation of v in t, else without R (`_link`)
    sum of bytes held and computed <= budget   at every slot where something may run                 (`_fit`)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from autockpt.passes.graph import Booleans, Floats, Integers
from autockpt.passes.instances.instance import Instance, Recomputations, extra_seconds, peak_bytes
from autockpt.passes.instances.schedule import Grid
from autockpt.passes.intervals import Constraints, LinearProgram, solve_integer, solve_linear

Candidates = tuple[tuple[int, ...], ...]
"""For each forward operation, the stages in which it may be recomputed."""
_ALWAYS = -1
"""In place of a variable: something that happens in every plan."""


@dataclass(frozen=True)
class StageResult:
    recomputed: Recomputations | None
    """None where no plan faster than the limit was found."""
    proven: bool
    """No plan with these candidates is faster."""
    timed_out: bool


def solve_stages(
    instance: Instance, budget_bytes: int, stages: Candidates, limit_seconds: float, below_seconds: float = np.inf
) -> StageResult:
    """The fastest plan with these candidates that fits and has fewer extra seconds than `below_seconds`."""
    posed = StageProgram(instance, Grid.of(instance), stages)
    program = posed.pose(budget_bytes)
    relaxed = solve_linear(program)
    if relaxed is None or relaxed.objective >= below_seconds * posed.scale:
        return StageResult(None, True, False)
    if np.isfinite(below_seconds):
        program = program.fixed_by(relaxed, below_seconds * posed.scale)
    solution = solve_integer(program, limit_seconds)
    recomputed = None if solution.values is None else posed.recomputed(solution.values)
    # The solver's tolerance may leave a plan a few bytes over the budget, so the replay decides.
    fits = recomputed is not None and peak_bytes(instance, recomputed) <= budget_bytes
    if recomputed is None or not fits or extra_seconds(instance, recomputed) >= below_seconds:
        return StageResult(None, not solution.timed_out, solution.timed_out)
    return StageResult(recomputed, solution.proven, solution.timed_out)


@dataclass
class StageProgram:
    """The program as it is built up."""

    instance: Instance
    grid: Grid
    stages: Candidates
    cost: list[float] = field(default_factory=list)
    constraints: Constraints = field(default_factory=Constraints)
    recompute: dict[tuple[int, int], int] = field(default_factory=dict)
    """The variable R of each value and stage."""
    spans: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Bytes that are live while a variable is 1: variable or `_ALWAYS`, bytes, first and last slot."""

    @property
    def scale(self) -> float:
        """Of the objective, near 1000 for the largest cost: a power of two, so that whole costs stay whole."""
        most = float(self.instance.costs[: self.instance.boundary].max(initial=0.0))
        return float(2.0 ** np.round(np.log2(1e3 / most))) if most > 0 else 1.0

    def pose(self, budget_bytes: int) -> LinearProgram:
        for value, stages in enumerate(self.stages):
            for stage in stages:
                self.recompute[value, stage] = self._variable(float(self.instance.costs[value]) * self.scale)
        for value in range(self.instance.boundary):
            self._add_forward_value(value)
        for value in range(self.instance.boundary, self.instance.count):
            self._add_backward_value(value)
        for value in range(self.instance.count):
            slot = self.grid.first_slot(value)
            self.spans.append((_ALWAYS, int(self.instance.workspace[value]), slot, slot))
        self._fit(budget_bytes)
        return LinearProgram.of_shares(np.array(self.cost), self.constraints)

    def recomputed(self, values: Floats) -> Recomputations:
        """The plan of a solution."""
        found: list[list[int]] = [[] for _ in range(self.grid.stages)]
        for (value, stage), variable in self.recompute.items():
            if values[variable] > 0.5:
                found[stage].append(value)
        return tuple(map(tuple, found))

    def _variable(self, cost: float) -> int:
        self.cost.append(cost)
        return len(self.cost) - 1

    def _add_backward_value(self, value: int) -> None:
        reads = [self.grid.first_slot(reader) for reader in self.instance.readers[value]]
        first = self.grid.first_slot(value)
        last = self.grid.size - 1 if self.instance.is_output[value] else max([first, *reads])
        self.spans.append((_ALWAYS, int(self.instance.nbytes[value]), first, last))

    def _add_forward_value(self, value: int) -> None:
        nbytes = int(self.instance.nbytes[value])
        forward_readers = [reader for reader in self.instance.readers[value] if reader < self.instance.boundary]
        last = max([value, *forward_readers])
        self.spans.append((_ALWAYS, nbytes, value, last))
        held: int | None = None
        computed: int | None = None
        for slot, runs, operation in self._events(value):
            before, held = held, self._variable(0.0)
            self.spans.append((held, nbytes, last + 1, slot))
            self._link(held, before, computed)
            last = slot
            if operation == value:
                computed = runs
                self.spans.append((runs, nbytes + int(self.instance.workspace[value]), slot, slot))
            else:
                computed = None
                self._require(held, runs)

    def _events(self, value: int) -> list[tuple[int, int, int]]:
        """Slot, variable of what runs there (`_ALWAYS` for backward operations), and the operation, in order."""
        events = [(self.grid.slot(t, value), self.recompute[value, t], value) for t in self.stages[value]]
        for reader in self.instance.readers[value]:
            if reader >= self.instance.boundary:
                events.append((self.grid.first_slot(reader), _ALWAYS, reader))
            else:
                events += [(self.grid.slot(t, reader), self.recompute[reader, t], reader) for t in self.stages[reader]]
        if self.instance.is_output[value]:
            events.append((self.grid.size, _ALWAYS, -1))
        return sorted(events)

    def _link(self, held: int, before: int | None, computed: int | None) -> None:
        """Held to this event only if held to the one before or computed there; the forward leaves every value."""
        if before is None:
            return
        terms = [held, before] if computed is None else [held, before, computed]
        self.constraints.add(terms, [-1.0] + [1.0] * (len(terms) - 1), low=0.0)

    def _require(self, held: int, runs: int) -> None:
        """Held where what reads it runs."""
        if runs == _ALWAYS:
            self.constraints.add([held], [1.0], low=1.0)
        else:
            self.constraints.add([held, runs], [1.0, -1.0], low=0.0)

    def _fit(self, budget_bytes: int) -> None:
        """One constraint for each slot where something may run, without those that cannot be violated."""
        always = {self.grid.first_slot(operation) for operation in range(self.instance.count)}
        slots = np.array(sorted(always | {self.grid.slot(t, v) for v, t in self.recompute}))
        spans = np.array([span for span in self.spans if span[1] > 0], dtype=np.int64).reshape(-1, 4)
        variable, nbytes, first, last = spans.T
        begin, end = np.searchsorted(slots, first), np.searchsorted(slots, last, side="right")
        span, slot = _cells(begin, end)
        fixed, free = variable[span] == _ALWAYS, variable[span] != _ALWAYS
        count = len(slots)
        slack: Floats = budget_bytes - np.bincount(slot[fixed], nbytes[span[fixed]], count).astype(np.float64)
        span, slot = span[free], slot[free]
        binding = np.bincount(slot, nbytes[span], count) > slack
        binding &= ~_implied(slot, variable[span], slack)
        span, slot = span[binding[slot]], slot[binding[slot]]
        unit = np.float64(1e3 / max(budget_bytes, 1))
        self.constraints.add_groups(slot, variable[span], nbytes[span] * unit, slack * unit)


def _cells(begin: Integers, end: Integers) -> tuple[Integers, Integers]:
    """Every pair (number of a range, position inside it) of the ranges `begin[n] .. end[n]-1`, range by range."""
    length = np.maximum(end - begin, 0)
    number = np.repeat(np.arange(len(length)), length)
    first_pair = np.cumsum(length) - length
    return number, begin[number] + np.arange(len(number)) - first_pair[number]


def _implied(slot: Integers, variable: Integers, slack: Floats) -> Booleans:
    """Slots with a neighbour that has all of their variables and no more slack."""
    members: list[set[int]] = [set() for _ in slack]
    for number, held in zip(slot.tolist(), variable.tolist(), strict=True):
        members[number].add(held)
    implied = np.zeros(len(slack), dtype=np.bool_)
    last = 0
    for number in range(1, len(slack)):
        if members[number] <= members[last] and slack[number] >= slack[last]:
            implied[number] = True
            continue
        implied[last] |= members[last] <= members[number] and slack[last] >= slack[number]
        last = number
    return implied
