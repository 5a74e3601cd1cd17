"""A plan as a set of recomputations, with the live bytes at every slot updated as recomputations come and go.

Slots number the moments at which something may run. The forward's operations come first, one slot each. Then every
backward operation has a stage: one slot for each forward operation that may be recomputed before it, in their order,
and one for itself. A slot where nothing runs holds what is live across it, which is never more than the next slot where
something runs; so the peak over all slots is the peak of the plan.

Any set of recomputations (value, stage) is a plan: what one of them reads is held since it was computed last. Adding or
removing one therefore changes the lifetimes of its own value and of its inputs only, each by one range of slots.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from autockpt.passes.instances.instance import Instance, Recomputations


@dataclass(frozen=True, slots=True)
class Grid:
    """The numbering of the slots."""

    boundary: int
    stages: int

    @staticmethod
    def of(instance: Instance) -> Grid:
        return Grid(instance.boundary, instance.count - instance.boundary)

    @property
    def size(self) -> int:
        return self.boundary + self.stages * (self.boundary + 1)

    def slot(self, stage: int, operation: int) -> int:
        """Where a forward operation is recomputed in a stage."""
        return self.boundary + stage * (self.boundary + 1) + operation

    def first_slot(self, operation: int) -> int:
        """Where an operation runs for the first time."""
        return operation if operation < self.boundary else self.slot(operation - self.boundary, self.boundary)

    def stage(self, slot: int) -> int:
        """The stage of a slot: -1 in the forward, `stages` at the end of the step."""
        return (slot - self.boundary) // (self.boundary + 1)


class Schedule:
    def __init__(self, instance: Instance, recomputed: Recomputations) -> None:
        self.instance, self.grid = instance, Grid.of(instance)
        self.costs, self.nbytes = instance.costs.tolist(), instance.nbytes.tolist()
        self.workspace = instance.workspace.tolist()
        self.live = np.zeros(self.grid.size + 1, dtype=np.int64)
        """Bytes at each slot; the last slot is the end of the step, at which outputs are read."""
        self.computed = [[self.grid.first_slot(operation)] for operation in range(instance.count)]
        """The slots at which each operation runs, in order."""
        self.reads: list[list[int]] = [[] for _ in range(instance.count)]
        """The slots at which each operation's result is read, in order."""
        self.extra_seconds = 0.0
        self.recomputations: list[tuple[int, int]] = []
        """(value, stage), in no particular order."""
        self.places: dict[tuple[int, int], int] = {}
        """The position of each of them in `recomputations`."""
        for operation in range(instance.count):
            slot = self.grid.first_slot(operation)
            self.live[slot] += self.nbytes[operation] + self.workspace[operation]
            for source in instance.reads[operation]:
                self._add_read(source, slot)
        for value in np.flatnonzero(instance.is_output).tolist():
            self._add_read(value, self.grid.size)
        for stage, operations in enumerate(recomputed):
            for value in operations:
                self.add(value, stage)

    def add(self, value: int, stage: int) -> None:
        slot = self.grid.slot(stage, value)
        self._change_live(value, slot, sign=1)
        computed = self.computed[value]
        computed.insert(bisect_left(computed, slot), slot)
        for source in self.instance.reads[value]:
            self._add_read(source, slot)
        self.extra_seconds += self.costs[value]
        self.places[value, stage] = len(self.recomputations)
        self.recomputations.append((value, stage))

    def remove(self, value: int, stage: int) -> None:
        slot = self.grid.slot(stage, value)
        computed = self.computed[value]
        del computed[bisect_left(computed, slot)]
        for source in self.instance.reads[value]:
            self._remove_read(source, slot)
        self._change_live(value, slot, sign=-1)
        self.extra_seconds -= self.costs[value]
        place, last = self.places.pop((value, stage)), self.recomputations.pop()
        if last != (value, stage):
            self.recomputations[place], self.places[last] = last, place

    def is_read(self, value: int, stage: int) -> bool:
        """Whether anything reads the result of this recomputation before the value is computed again."""
        slot = self.grid.slot(stage, value)
        computed, reads = self.computed[value], self.reads[value]
        read, following = bisect_left(reads, slot), bisect_left(computed, slot) + 1
        return read < len(reads) and (following == len(computed) or reads[read] < computed[following])

    def neighbours(self, value: int, slot: int) -> tuple[int | None, int | None]:
        """The stages of the value's recomputations before and after a slot, without one at the slot."""
        computed = self.computed[value]
        place = bisect_left(computed, slot)
        following = place + (place < len(computed) and computed[place] == slot)
        before = self.grid.stage(computed[place - 1]) if place > 1 else None
        return before, self.grid.stage(computed[following]) if following < len(computed) else None

    def is_held_for(self, value: int, slot: int) -> bool:
        """Whether the read at this slot alone holds the value from an earlier stage into this one."""
        last_event, is_read_later = self._lifetime(value, slot, but_read_at=True)
        return not is_read_later and self.grid.stage(last_event) < self.grid.stage(slot)

    def recomputed(self) -> Recomputations:
        stages: list[list[int]] = [[] for _ in range(self.grid.stages)]
        for value, stage in self.recomputations:
            stages[stage].append(value)
        return tuple(tuple(sorted(operations)) for operations in stages)

    def _change_live(self, value: int, slot: int, sign: int) -> None:
        """Add (1) or remove (-1) the bytes of a recomputation at a slot where the value is otherwise not computed.

        Where the value is read later, it was live at the slot already, and is no longer live between its last event
        and the slot. Where it is not, the recomputation adds its bytes at the slot itself.
        """
        nbytes, own = sign * self.nbytes[value], sign * self.workspace[value]
        last_event, is_read_later = self._lifetime(value, slot)
        if is_read_later:
            self.live[last_event + 1 : slot] -= nbytes
            self.live[slot] += own
        else:
            self.live[slot] += nbytes + own

    def _add_read(self, value: int, slot: int) -> None:
        last_event, is_read_later = self._lifetime(value, slot)
        if not is_read_later:
            self.live[last_event + 1 : slot + 1] += self.nbytes[value]
        reads = self.reads[value]
        reads.insert(bisect_left(reads, slot), slot)

    def _remove_read(self, value: int, slot: int) -> None:
        reads = self.reads[value]
        del reads[bisect_left(reads, slot)]
        last_event, is_read_later = self._lifetime(value, slot)
        if not is_read_later:
            self.live[last_event + 1 : slot + 1] -= self.nbytes[value]

    def _lifetime(self, value: int, slot: int, but_read_at: bool = False) -> tuple[int, bool]:
        """The last slot before this one at which the value is computed or read; and whether it is read later.

        Later: at this slot or after it, before the value is computed at this slot or after it. With `but_read_at`
        the read at this slot does not count.
        """
        computed, reads = self.computed[value], self.reads[value]
        following, read = bisect_left(computed, slot), bisect_left(reads, slot)
        last_event = computed[following - 1]
        if read and reads[read - 1] > last_event:
            last_event = reads[read - 1]
        later = read + but_read_at
        return last_event, later < len(reads) and (following == len(computed) or reads[later] < computed[following])
