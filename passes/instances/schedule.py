"""A schedule as a set of runs, with the bytes live at every slot saved up to date as runs come and go.

A run (v, t) is forward operation v running again just before backward operation t. Any set of runs is a schedule: what
a run reads is held from wherever it was made last. So adding or removing one changes only the lives of its own value
and of its inputs, each by one range of slots of the `Grid`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from autockpt.passes.instances.instance import Instance, Recomputations

_NEVER = 1 << 60


class Sequence:
    def __init__(self, instance: Instance, again: Recomputations) -> None:
        self.instance, self.grid = instance, Grid.of(instance)
        self.costs, self.nbytes = instance.costs.tolist(), instance.nbytes.tolist()
        self.scratch = instance.scratch.tolist()
        self.live = np.zeros(self.grid.size + 1, dtype=np.int64)
        """The last slot stands for the end of the step."""
        self.makes = [[self.grid.home(operation)] for operation in range(instance.count)]
        self.reads: list[list[int]] = [[] for _ in range(instance.count)]
        self.extra_seconds = 0.0
        self.runs: list[tuple[int, int]] = []
        self.places: dict[tuple[int, int], int] = {}
        for operation in range(instance.count):
            home = self.grid.home(operation)
            self.live[home] += self.nbytes[operation] + self.scratch[operation]
            for source in instance.reads[operation]:
                self._add_read(source, home)
        for value in np.flatnonzero(instance.stays).tolist():
            self._add_read(value, self.grid.size)
        for stage, more in enumerate(again):
            for value in more:
                self.add(value, stage)

    def add(self, value: int, stage: int) -> None:
        slot = self.grid.slot(stage, value)
        before, after = self._lives(value, slot)
        if after:
            self.live[before + 1 : slot] -= self.nbytes[value]
            self.live[slot] += self.scratch[value]
        else:
            self.live[slot] += self.nbytes[value] + self.scratch[value]
        makes = self.makes[value]
        makes.insert(bisect_left(makes, slot), slot)
        for source in self.instance.reads[value]:
            self._add_read(source, slot)
        self.extra_seconds += self.costs[value]
        self.places[value, stage] = len(self.runs)
        self.runs.append((value, stage))

    def remove(self, value: int, stage: int) -> None:
        slot = self.grid.slot(stage, value)
        makes = self.makes[value]
        del makes[bisect_left(makes, slot)]
        for source in self.instance.reads[value]:
            self._remove_read(source, slot)
        before, after = self._lives(value, slot)
        if after:
            self.live[before + 1 : slot] += self.nbytes[value]
            self.live[slot] -= self.scratch[value]
        else:
            self.live[slot] -= self.nbytes[value] + self.scratch[value]
        self.extra_seconds -= self.costs[value]
        place, last = self.places.pop((value, stage)), self.runs.pop()
        if last != (value, stage):
            self.runs[place], self.places[last] = last, place

    def is_read(self, value: int, stage: int) -> bool:
        """Something reads this run's result before the value is made again."""
        slot = self.grid.slot(stage, value)
        makes, reads = self.makes[value], self.reads[value]
        read, after = bisect_left(reads, slot), bisect_left(makes, slot) + 1
        return read < len(reads) and (after == len(makes) or reads[read] < makes[after])

    def neighbours(self, value: int, slot: int) -> tuple[int | None, int | None]:
        """The stages of the runs of the value before and after a slot, itself not counted."""
        makes = self.makes[value]
        place = bisect_left(makes, slot)
        later = place + (place < len(makes) and makes[place] == slot)
        before = self.grid.stage(makes[place - 1]) if place > 1 else None
        return before, self.grid.stage(makes[later]) if later < len(makes) else None

    def is_stretched(self, value: int, slot: int) -> bool:
        """The read at this slot is the last one of its life, and the stage's first: it alone holds the value so far."""
        before, after = self._lives(value, slot, skip=1)
        return not after and self.grid.stage(before) < self.grid.stage(slot)

    def again(self) -> Recomputations:
        stages: list[list[int]] = [[] for _ in range(self.grid.stages)]
        for value, stage in self.runs:
            stages[stage].append(value)
        return tuple(tuple(sorted(more)) for more in stages)

    def _lives(self, value: int, slot: int, skip: int = 0) -> tuple[int, bool]:
        """Where the life around the slot ends without what is at the slot and later; whether it is read later."""
        makes, reads = self.makes[value], self.reads[value]
        place, read = bisect_left(makes, slot), bisect_left(reads, slot)
        made = makes[place - 1]
        again = makes[place] if place < len(makes) else _NEVER
        before = reads[read - 1] if read and reads[read - 1] > made else made
        return before, read + skip < len(reads) and reads[read + skip] < again

    def _add_read(self, value: int, slot: int) -> None:
        before, after = self._lives(value, slot)
        if not after:
            self.live[before + 1 : slot + 1] += self.nbytes[value]
        reads = self.reads[value]
        reads.insert(bisect_left(reads, slot), slot)

    def _remove_read(self, value: int, slot: int) -> None:
        reads = self.reads[value]
        del reads[bisect_left(reads, slot)]
        before, after = self._lives(value, slot)
        if not after:
            self.live[before + 1 : slot + 1] -= self.nbytes[value]


@dataclass(frozen=True, slots=True)
class Grid:
    boundary: int
    stages: int

    @staticmethod
    def of(instance: Instance) -> Grid:
        return Grid(instance.boundary, instance.count - instance.boundary)

    @property
    def size(self) -> int:
        return self.boundary + self.stages * (self.boundary + 1)

    def slot(self, stage: int, operation: int) -> int:
        return self.boundary + stage * (self.boundary + 1) + operation

    def home(self, operation: int) -> int:
        """Where the operation runs for the first time."""
        return operation if operation < self.boundary else self.slot(operation - self.boundary, self.boundary)

    def stage(self, slot: int) -> int:
        """-1 in the forward; `stages` at the end of the step."""
        return (slot - self.boundary) // (self.boundary + 1)
