"""Simulated annealing on the runs of a schedule (Kirkpatrick, Gelatt, Vecchi 1983), from a plan that may not fit yet.

The energy is the extra seconds plus a price for what is over the budget: the highest excess and the mean excess of a
stage. The price rises while the temperature falls, so that the search first crosses plans that do not fit and ends
among those that do. Steps, numbers and their order depend on the instance and the seed alone, never on a clock.

Moves of the annealing: pull a run to a stage with what it lacks, drop one with what only it needed, shift one.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import exp, inf
from random import Random

from autockpt.passes.instances.instance import Instance, Recomputations, peak_bytes
from autockpt.passes.instances.schedule import Sequence

_HOT, _COLD = 1e-2, 1e-4
"""Temperatures, in steps without recomputation."""
_CHEAP, _DEAR = 0.5, 5.0
"""Prices of the excess, in such steps for as much as keeping everything takes."""
_MEAN = 0.3
"""Weight of a stage's mean excess, summed over stages, beside the highest excess."""


@dataclass(frozen=True)
class Annealed:
    again: Recomputations | None
    """The fastest plan that fits; None where none was met."""
    lowest: Recomputations
    """The plan of the lowest peak that was met."""


def anneal(instance: Instance, again: Recomputations, budget_bytes: int, iterations: int, seed: int) -> Annealed:
    random = Random(seed)
    state = Sequence(instance, again)
    moves = Moves(state, random)
    step = max(instance.step_seconds, 1e-300)
    price = step / max(peak_bytes(instance, instance.save_everything), 1)
    seconds, excess, highest = state.extra_seconds, *_excess(state, budget_bytes)
    best, lowest = (again, seconds) if highest <= 0 else (None, inf), (again, highest)
    for number in range(iterations):
        share = number / iterations
        heat, dear = step * _HOT * (_COLD / _HOT) ** share, price * _CHEAP * (_DEAR / _CHEAP) ** share
        if not moves.propose():
            continue
        luck = random.random()
        rise = state.extra_seconds - seconds
        # Even with no excess at all: spares looking at the memory of most hopeless moves.
        if rise - dear * excess > 0 and luck >= exp(-(rise - dear * excess) / heat):
            moves.undo()
            continue
        after, top = _excess(state, budget_bytes)
        rise += dear * (after - excess)
        if rise > 0 and luck >= exp(-rise / heat):
            moves.undo()
            continue
        seconds, excess = state.extra_seconds, after
        if top < lowest[1]:
            lowest = (state.again(), top) if best[0] is None else lowest
        if top <= 0 and seconds < best[1] * (1 - 1e-12):
            best = (state.again(), seconds)
    return Annealed(best[0], best[0] or lowest[0])


def _excess(state: Sequence, budget_bytes: int) -> tuple[float, int]:
    """As it is priced, and the highest."""
    highest = int(state.live.max()) - budget_bytes
    if highest <= 0:
        return 0.0, highest
    over = state.live[state.live > budget_bytes]
    total = int(over.sum()) - budget_bytes * len(over)
    return highest + _MEAN * total / (state.grid.boundary + 1), highest


_DROP, _SHIFT = 0.25, 0.15
_DEEPER = 0.8
"""Chance that an input which a pulled run would hold for long is pulled too."""
_MERGE = 0.5
"""Chance that a pulled run takes the place of the value's next run."""
_NEAR = 4
"""Stages by which a shift goes at most, when it does not go to a read."""


class Moves:
    def __init__(self, state: Sequence, random: Random) -> None:
        self.state, self.random = state, random
        self.free = [value for value in range(state.instance.boundary) if not state.instance.once[value]]
        self.log: list[tuple[bool, int, int]] = []
        """What the last proposal did: added or removed, value, stage."""

    def propose(self) -> bool:
        """Change the state; False where nothing came of it."""
        self.log.clear()
        kind = self.random.random()
        runs = self.state.runs
        if kind < _DROP + _SHIFT and runs:
            value, stage = runs[int(self.random.random() * len(runs))]
            self._drop(value, stage)
            if kind < _SHIFT:
                self._pull(value, self._other_stage(value, stage))
        elif self.free:
            value = self.free[int(self.random.random() * len(self.free))]
            self._pull(value, self._read_stage(value))
        return bool(self.log)

    def undo(self) -> None:
        for added, value, stage in reversed(self.log):
            (self.state.remove if added else self.state.add)(value, stage)

    def _add(self, value: int, stage: int) -> None:
        self.state.add(value, stage)
        self.log.append((True, value, stage))

    def _read_stage(self, value: int) -> int:
        """Of a read in the backward; -1 where there is none."""
        reads = self.state.reads[value]
        first = bisect_left(reads, self.state.grid.boundary)
        count = len(reads) - first
        return self.state.grid.stage(reads[first + int(self.random.random() * count)]) if count else -1

    def _other_stage(self, value: int, stage: int) -> int:
        if self.random.random() < 0.5:
            return self._read_stage(value)
        return stage + int(self.random.random() * (2 * _NEAR + 1)) - _NEAR

    def _drop(self, value: int, stage: int) -> None:
        """Remove a run, and every run whose result nothing reads then."""
        state = self.state
        state.remove(value, stage)
        self.log.append((False, value, stage))
        slot = state.grid.slot(stage, value)
        for source in state.instance.reads[value]:
            before, _ = state.neighbours(source, slot)
            if before is not None and not state.is_read(source, before):
                self._drop(source, before)

    def _pull(self, value: int, stage: int) -> None:
        """Run the value at the stage, perhaps with inputs that would otherwise be held for long."""
        state = self.state
        if not 0 <= stage < state.grid.stages or (value, stage) in state.places or state.instance.once[value]:
            return
        self._add(value, stage)
        slot = state.grid.slot(stage, value)
        before, after = state.neighbours(value, slot)
        if after is not None and self.random.random() < _MERGE:
            self._drop(value, after)
        if before is not None and not state.is_read(value, before):
            self._drop(value, before)
        if not state.is_read(value, stage):
            self._drop(value, stage)
            return
        for source in state.instance.reads[value]:
            if state.is_stretched(source, slot) and self.random.random() < _DEEPER:
                self._pull(source, stage)
