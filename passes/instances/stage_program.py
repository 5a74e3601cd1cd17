"""The stage program: recomputation at chosen moments, any number of times, as an integer program.

Checkmate (Jain et al. 2020) may run any forward operation again before any backward operation; here only at candidate
stages, which keeps the program small enough to prove. With `R[v,t]` = v runs again before backward operation t and
`H[v,i]` = v is held from its event i-1 up to event i, where the events of v are its candidate runs and its reads:

    minimise   sum costs[v] R[v,t]
    H[v,i] >= 1                       where the backward reads v at event i                  (`_read`)
    H[v,i] >= R[w,t]                  where event i is the run of w before t, which reads v  (`_read`)
    H[v,i] <= H[v,i-1] + R[v,t]       where event i-1 is the run of v before t, else without R (`_hold`)
    sum of bytes held and made <= budget   at every slot of the grid where something may run  (`_memory`)

Moments of a schedule in which any forward operation may run again before any backward operation.

The forward's operations come first, one slot each. Then every backward operation has a stage: one slot for each forward
operation that may run again, in their order, and one for itself. A slot where nothing runs holds what is live across
it, which is never more than the next slot where something runs, so the peak over all slots is the peak of the schedule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from autockpt.passes.graph import Booleans, Floats, Integers
from autockpt.passes.instances.instance import Instance, Recomputations, extra_seconds, peak_bytes
from autockpt.passes.instances.schedule import Grid
from autockpt.passes.intervals import Constraints, LinearProgram, solve_integer, solve_linear

Candidates = tuple[tuple[int, ...], ...]
"""For each forward operation the stages at which it may run again."""


@dataclass
class StageProgram:
    """The program while it is written down."""

    instance: Instance
    grid: Grid
    stages: Candidates
    cost: list[float] = field(default_factory=list)
    constraints: Constraints = field(default_factory=Constraints)
    runs: dict[tuple[int, int], int] = field(default_factory=dict)
    spans: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Variable, bytes, and the slots from which and up to which it holds them; -1 for what is live in every plan."""

    @property
    def scale(self) -> float:
        """A power of two, so that whole costs stay whole to the solver."""
        most = float(self.instance.costs[: self.instance.boundary].max(initial=0.0))
        return float(2.0 ** np.round(np.log2(1e3 / most))) if most > 0 else 1.0

    def pose(self, budget_bytes: int) -> LinearProgram:
        for value, stages in enumerate(self.stages):
            for stage in stages:
                self.runs[value, stage] = self._variable(float(self.instance.costs[value]) * self.scale)
        for value in range(self.instance.boundary):
            self._forward_value(value)
        for value in range(self.instance.boundary, self.instance.count):
            ends = [self.grid.home(reader) for reader in self.instance.readers[value]]
            last = self.grid.size - 1 if self.instance.stays[value] else max(ends, default=0)
            home = self.grid.home(value)
            self.spans.append((-1, int(self.instance.nbytes[value]), home, max(home, last)))
        for value in range(self.instance.count):
            self.spans.append((-1, int(self.instance.scratch[value]), self.grid.home(value), self.grid.home(value)))
        self._memory(budget_bytes)
        return LinearProgram.of_shares(np.array(self.cost), self.constraints)

    def read_off(self, values: Floats) -> Recomputations:
        again: list[list[int]] = [[] for _ in range(self.grid.stages)]
        for (value, stage), variable in self.runs.items():
            if values[variable] > 0.5:
                again[stage].append(value)
        return tuple(map(tuple, again))

    def _variable(self, cost: float) -> int:
        self.cost.append(cost)
        return len(self.cost) - 1

    def _forward_value(self, value: int) -> None:
        nbytes, boundary = int(self.instance.nbytes[value]), self.instance.boundary
        last = max([value, *(reader for reader in self.instance.readers[value] if reader < boundary)])
        self.spans.append((-1, nbytes, value, last))
        held, made = -1, -1
        for slot, run, reader in self._events(value):
            before, held = held, self._variable(0.0)
            self.spans.append((held, nbytes, last + 1, slot))
            self._hold(held, before, made)
            if reader != value:
                self._read(held, run)
            made, last = (run, slot) if reader == value else (-1, slot)
            if made >= 0:
                self.spans.append((made, nbytes + int(self.instance.scratch[value]), slot, slot))

    def _events(self, value: int) -> list[tuple[int, int, int]]:
        """Slot, variable of the run there (-1: it runs anyway) and the operation that runs, in order."""
        events = [(self.grid.slot(t, value), self.runs[value, t], value) for t in self.stages[value]]
        for reader in self.instance.readers[value]:
            if reader >= self.instance.boundary:
                events.append((self.grid.home(reader), -1, reader))
            else:
                events += [(self.grid.slot(t, reader), self.runs[reader, t], reader) for t in self.stages[reader]]
        if self.instance.stays[value]:
            events.append((self.grid.size, -1, -1))
        return sorted(events)

    def _hold(self, held: int, before: int, made: int) -> None:
        """Held now: held before or made there. Before the first event everything is there, from the forward."""
        if before >= 0:
            terms = [held, before] if made < 0 else [held, before, made]
            self.constraints.add(terms, [-1.0] + [1.0] * (len(terms) - 1), 0.0)

    def _read(self, held: int, run: int) -> None:
        terms, sides = ([held], [1.0]) if run < 0 else ([held, run], [1.0, -1.0])
        self.constraints.add(terms, sides, 1.0 if run < 0 else 0.0)

    def _memory(self, budget_bytes: int) -> None:
        """A row for each slot where something may run, but those that cannot be full."""
        used = {self.grid.home(operation) for operation in range(self.instance.count)}
        slots = np.array(sorted(used | {self.grid.slot(t, v) for v, t in self.runs}))
        variable, nbytes, begin, end = np.array(self.spans, dtype=np.int64).T
        first, past = np.searchsorted(slots, begin), np.searchsorted(slots, end, side="right")
        length = np.maximum(past - first, 0) * (nbytes > 0)
        line = np.repeat(first - np.cumsum(length) + length, length) + np.arange(length.sum())
        column, weight = np.repeat(variable, length), np.repeat(nbytes, length).astype(np.float64)
        given = column < 0
        room: Floats = budget_bytes - np.bincount(line[given], weight[given], len(slots)).astype(np.float64)
        full = np.bincount(line[~given], weight[~given], len(slots)) > room
        full &= ~_implied(line[~given], column[~given], room)
        chosen = ~given & full[line]
        unit = np.float64(1e3 / max(budget_bytes, 1))
        self.constraints.add_groups(line[chosen], column[chosen], weight[chosen] * unit, room * unit)


def _implied(line: Integers, column: Integers, room: Floats) -> Booleans:
    """Rows whose neighbour has all of their variables and no more room."""
    members: list[set[int]] = [set() for _ in room]
    for slot, variable in zip(line.tolist(), column.tolist(), strict=True):
        members[slot].add(variable)
    implied = np.zeros(len(room), dtype=np.bool_)
    last = 0
    for slot in range(1, len(room)):
        if members[slot] <= members[last] and room[slot] >= room[last]:
            implied[slot] = True
            continue
        implied[last] |= members[last] <= members[slot] and room[last] >= room[slot]
        last = slot
    return implied


@dataclass(frozen=True)
class StageAnswer:
    again: Recomputations | None
    """None where nothing better than what was given was found."""
    proven: bool
    """No plan with these candidates is better."""
    timed_out: bool


def candidates(instance: Instance, reach: int, plans: Iterable[Recomputations] = ()) -> Candidates:
    """Stages of backward reads up to `reach` readers away, and every run of `plans`."""
    boundary = instance.boundary
    found = [{reader - boundary for reader in readers if reader >= boundary} for readers in instance.readers[:boundary]]
    for _ in range(reach):
        found = [own.union(*(found[r] for r in instance.readers[v] if r < boundary)) for v, own in enumerate(found)]
    for again in plans:
        for stage, more in enumerate(again):
            for value in more:
                found[value].add(stage)
    return tuple(() if instance.once[v] else tuple(sorted(stages)) for v, stages in enumerate(found))


def solve_stages(
    instance: Instance, budget_bytes: int, stages: Candidates, limit_seconds: float, below_seconds: float = np.inf
) -> StageAnswer:
    """The cheapest plan that fits and costs less than `below_seconds`."""
    posed = StageProgram(instance, Grid.of(instance), stages)
    program = posed.pose(budget_bytes)
    relaxed = solve_linear(program)
    if relaxed is None or relaxed.objective >= below_seconds * posed.scale:
        return StageAnswer(None, True, False)
    if np.isfinite(below_seconds):
        program = program.fixed_by(relaxed, below_seconds * posed.scale)
    mixed = solve_integer(program, limit_seconds)
    again = None if mixed.values is None else posed.read_off(mixed.values)
    # The solver's tolerance could leave a plan a few bytes over: only the replay decides.
    if again is None or peak_bytes(instance, again) > budget_bytes or extra_seconds(instance, again) >= below_seconds:
        return StageAnswer(None, not mixed.timed_out, mixed.timed_out)
    return StageAnswer(again, mixed.proven, mixed.timed_out)
