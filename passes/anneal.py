"""Simulated annealing on the runs of a schedule (Kirkpatrick, Gelatt, Vecchi 1983), from a plan that may not fit yet.

The energy is the extra seconds plus a price for what is over the budget: the highest excess and the mean excess of a
stage. The price rises while the temperature falls, so that the search first crosses plans that do not fit and ends
among those that do. Steps, numbers and their order depend on the task and the seed alone, never on a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf
from random import Random

from autockpt.passes.moves import Moves
from autockpt.passes.sequence import Sequence
from autockpt.passes.task import Again, Task, peak_bytes

_HOT, _COLD = 1e-2, 1e-4
"""Temperatures, in steps without recomputation."""
_CHEAP, _DEAR = 0.5, 5.0
"""Prices of the excess, in such steps for as much as keeping everything takes."""
_MEAN = 0.3
"""Weight of a stage's mean excess, summed over stages, beside the highest excess."""


@dataclass(frozen=True)
class Annealed:
    again: Again | None
    """The fastest plan that fits; None where none was met."""
    lowest: Again
    """The plan of the lowest peak that was met."""


def anneal(task: Task, again: Again, budget_bytes: int, iterations: int, seed: int) -> Annealed:
    random = Random(seed)
    state = Sequence(task, again)
    moves = Moves(state, random)
    step = max(task.step_seconds, 1e-300)
    price = step / max(peak_bytes(task, task.keep_everything), 1)
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
    return highest + _MEAN * total / (state.grid.turn + 1), highest
