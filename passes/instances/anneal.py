"""Simulated annealing on a plan's recomputations (Kirkpatrick, Gelatt, Vecchi 1983), from a plan that may not fit.

The energy is the extra seconds plus a penalty for bytes over the budget: the largest excess of any slot, and the mean
excess of a stage summed over stages. The penalty rises while the temperature falls, so the search first passes through
plans that do not fit and ends among those that do. Every random number depends on the instance and the seed alone.

A move recomputes a value in some stage, together with inputs it would otherwise hold for long; or removes a
recomputation and those that only it needed; or shifts one to another stage.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import exp, inf
from random import Random

from autockpt.passes.instances.instance import Instance, Recomputations, peak_bytes
from autockpt.passes.instances.schedule import Schedule

_START_TEMPERATURE, _END_TEMPERATURE = 1e-2, 1e-4
"""In multiples of the step's seconds without recomputation."""
_START_PENALTY, _END_PENALTY = 0.5, 5.0
"""For an excess as large as the peak without recomputation, in the same multiples."""
_MEAN_WEIGHT = 0.3
"""Of the mean excesses of all stages, beside the largest excess."""
_REMOVE, _SHIFT = 0.25, 0.15
"""Shares of the moves; all others add a recomputation."""
_WITH_INPUT = 0.8
"""Chance that an input which an added recomputation would hold from an earlier stage is recomputed with it."""
_REPLACE_NEXT = 0.5
"""Chance that an added recomputation replaces the next one of the same value."""
_MAX_SHIFT = 4
"""Stages, where a shift does not go to the stage of a read."""


@dataclass(frozen=True)
class Annealed:
    fastest: Recomputations | None
    """The fastest plan that fits; None where none was visited."""
    smallest: Recomputations
    """The plan with the smallest peak that was visited, the starting plan included."""


def anneal(instance: Instance, start: Recomputations, budget_bytes: int, iterations: int, seed: int) -> Annealed:
    random = Random(seed)
    schedule = Schedule(instance, start)
    moves = Moves(schedule, random)
    step = max(instance.step_seconds, 1e-300)
    per_byte = step / max(peak_bytes(instance, instance.save_everything), 1)
    seconds, (excess, over) = schedule.extra_seconds, _excess(schedule, budget_bytes)
    fastest, least_seconds = (start, seconds) if over <= 0 else (None, inf)
    smallest, least_over = start, over
    for number in range(iterations):
        share = number / iterations
        temperature = step * _START_TEMPERATURE * (_END_TEMPERATURE / _START_TEMPERATURE) ** share
        penalty = per_byte * _START_PENALTY * (_END_PENALTY / _START_PENALTY) ** share
        if not moves.propose():
            continue
        chance = random.random()
        rise = schedule.extra_seconds - seconds
        # The rise if no byte were over the budget: most moves fail even then, and need no look at the memory.
        if rise - penalty * excess > 0 and chance >= exp(-(rise - penalty * excess) / temperature):
            moves.undo()
            continue
        new_excess, over = _excess(schedule, budget_bytes)
        rise += penalty * (new_excess - excess)
        if rise > 0 and chance >= exp(-rise / temperature):
            moves.undo()
            continue
        seconds, excess = schedule.extra_seconds, new_excess
        if over < least_over:
            smallest, least_over = schedule.recomputed(), over
        if over <= 0 and seconds < least_seconds * (1 - 1e-12):
            fastest, least_seconds = schedule.recomputed(), seconds
    return Annealed(fastest, smallest)


def _excess(schedule: Schedule, budget_bytes: int) -> tuple[float, int]:
    """Excess bytes as they are penalised, and the peak less the budget."""
    over = int(schedule.live.max()) - budget_bytes
    if over <= 0:
        return 0.0, over
    above = schedule.live[schedule.live > budget_bytes]
    total = int(above.sum()) - budget_bytes * len(above)
    return over + _MEAN_WEIGHT * total / (schedule.grid.boundary + 1), over


class Moves:
    """Random changes of a schedule, the last of which can be undone."""

    def __init__(self, schedule: Schedule, random: Random) -> None:
        self._schedule, self._random = schedule, random
        instance = schedule.instance
        self._candidates = [value for value in range(instance.boundary) if not instance.runs_once[value]]
        self._log: list[tuple[bool, int, int]] = []
        """What the last proposal did: whether it added or removed, value, stage."""

    def propose(self) -> bool:
        """Change the schedule; False where nothing changed."""
        self._log.clear()
        kind = self._random.random()
        recomputations = self._schedule.recomputations
        if kind < _REMOVE + _SHIFT and recomputations:
            value, stage = recomputations[int(self._random.random() * len(recomputations))]
            self._remove(value, stage)
            if kind < _SHIFT:
                self._add(value, self._other_stage(value, stage))
        elif self._candidates:
            value = self._candidates[int(self._random.random() * len(self._candidates))]
            self._add(value, self._read_stage(value))
        return bool(self._log)

    def undo(self) -> None:
        for added, value, stage in reversed(self._log):
            (self._schedule.remove if added else self._schedule.add)(value, stage)

    def _read_stage(self, value: int) -> int:
        """The stage of a random read by the backward; -1 where there is none."""
        grid, reads = self._schedule.grid, self._schedule.reads[value]
        first = bisect_left(reads, grid.boundary)
        count = len(reads) - first
        return grid.stage(reads[first + int(self._random.random() * count)]) if count else -1

    def _other_stage(self, value: int, stage: int) -> int:
        if self._random.random() < 0.5:
            return self._read_stage(value)
        return stage + int(self._random.random() * (2 * _MAX_SHIFT + 1)) - _MAX_SHIFT

    def _remove(self, value: int, stage: int) -> None:
        """Remove a recomputation, and every one whose result nothing reads then."""
        schedule = self._schedule
        schedule.remove(value, stage)
        self._log.append((False, value, stage))
        slot = schedule.grid.slot(stage, value)
        for source in schedule.instance.reads[value]:
            before, _ = schedule.neighbours(source, slot)
            if before is not None and not schedule.is_read(source, before):
                self._remove(source, before)

    def _add(self, value: int, stage: int) -> None:
        """Recompute the value in the stage, perhaps with inputs that would otherwise be held from an earlier one."""
        schedule = self._schedule
        in_backward = 0 <= stage < schedule.grid.stages
        if not in_backward or (value, stage) in schedule.places or schedule.instance.runs_once[value]:
            return
        schedule.add(value, stage)
        self._log.append((True, value, stage))
        slot = schedule.grid.slot(stage, value)
        before, following = schedule.neighbours(value, slot)
        if following is not None and self._random.random() < _REPLACE_NEXT:
            self._remove(value, following)
        if before is not None and not schedule.is_read(value, before):
            self._remove(value, before)
        if not schedule.is_read(value, stage):
            self._remove(value, stage)
            return
        for source in schedule.instance.reads[value]:
            if schedule.is_held_for(source, slot) and self._random.random() < _WITH_INPUT:
                self._add(source, stage)
