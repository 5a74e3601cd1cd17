"""Moves of the annealing: pull a run to a stage with what it lacks, drop one with what only it needed, shift one."""

from __future__ import annotations

from bisect import bisect_left
from random import Random

from autockpt.passes.sequence import Sequence

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
        self.free = [value for value in range(state.task.turn) if not state.task.once[value]]
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
        first = bisect_left(reads, self.state.grid.turn)
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
        for source in state.task.reads[value]:
            before, _ = state.neighbours(source, slot)
            if before is not None and not state.is_read(source, before):
                self._drop(source, before)

    def _pull(self, value: int, stage: int) -> None:
        """Run the value at the stage, perhaps with inputs that would otherwise be held for long."""
        state = self.state
        if not 0 <= stage < state.grid.stages or (value, stage) in state.places or state.task.once[value]:
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
        for source in state.task.reads[value]:
            if state.is_stretched(source, slot) and self.random.random() < _DEEPER:
                self._pull(source, stage)
