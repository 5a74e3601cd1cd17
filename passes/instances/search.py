"""The search for a fast plan of a `Instance` that fits: the interval program, then what its class leaves out.

1. Nothing runs again where everything fits. A small instance goes to the exact search.
2. The interval program gives a plan and the class bound.
3. Where its plan had to be tightened, a few plans are annealed, and the stage program takes the best of all that can be
   put together from their runs and those near the reads; a few times over.
4. The stage program looks for anything faster further from the reads, less far where it ran out of time before.

The default planner of a `Instance`: the search, and beside its plan what no plan can beat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from time import perf_counter

from autockpt.passes.instances.anneal import anneal
from autockpt.passes.instances.astar import TooLarge, solve_exact
from autockpt.passes.instances.bound import every_plan_bound
from autockpt.passes.instances.instance import Instance, Recomputations, extra_seconds, peak_bytes
from autockpt.passes.instances.intervals import interval_plan, just_in_time
from autockpt.passes.instances.stage_program import candidates, solve_stages

_SMALL = 14
"""Forward operations that the exact search takes."""
_PLANS, _ROUNDS = 3, 3
"""Plans annealed before each merging, and mergings."""
_ITERATIONS = 8_000
_LARGEST_GRID = 1_000_000
"""Slots beyond which neither annealing nor the stage program is worth its time."""


class Search:
    """The best plan so far and how it came to be."""

    def __init__(self, instance: Instance, budget_bytes: int, limit_seconds: float) -> None:
        self.instance, self.budget_bytes, self.limit_seconds = instance, budget_bytes, limit_seconds
        self.best: Recomputations | None = None
        self.seconds = inf
        self.lowest: Recomputations = instance.save_everything
        self.class_bound: float | None = None
        self.proven = self.timed_out = False

    def run(self, hopeless: bool) -> None:
        self._offer(self.instance.save_everything)
        if self.best is not None:
            self.proven, self.class_bound = True, 0.0
        elif hopeless:
            self._anneal([just_in_time(self.instance, ~self.instance.once[: self.instance.boundary])])
        elif not self._exact():
            self._gaps_and_search()

    def _offer(self, again: Recomputations | None) -> None:
        if again is None:
            return
        peak, seconds = peak_bytes(self.instance, again), extra_seconds(self.instance, again)
        if peak < peak_bytes(self.instance, self.lowest):
            self.lowest = again
        if peak <= self.budget_bytes and seconds < self.seconds:
            self.best, self.seconds = again, seconds

    def _exact(self) -> bool:
        if self.instance.boundary > _SMALL:
            return False
        try:
            self._offer(solve_exact(self.instance, self.budget_bytes))
        except TooLarge:
            return False
        self.proven = True
        if self.best is None:
            self._anneal([self.instance.save_everything])
        return True

    def _gaps_and_search(self) -> None:
        intervals = interval_plan(self.instance, self.budget_bytes, self.limit_seconds / 4)
        self.class_bound, self.timed_out = intervals.bound_seconds, intervals.timed_out
        self._offer(intervals.again)
        if (self.instance.boundary + 1) * (self.instance.count - self.instance.boundary) > _LARGEST_GRID:
            return
        if intervals.again is not None and len(intervals.tried) == 1:
            self._stages(2, [intervals.again], self.limit_seconds / 4)
            return
        everything = just_in_time(self.instance, ~self.instance.once[: self.instance.boundary])
        self._breed([*intervals.tried[:1], *intervals.tried[-1:], everything])
        self._stages(2 if self.timed_out else 4, [], self.limit_seconds / 2)

    def _breed(self, starts: Sequence[Recomputations]) -> None:
        """Anneal a few plans, merge them with the best so far, and so on."""
        for number in range(_ROUNDS):
            plans = self._anneal(starts if self.best else [*starts, self.lowest], number * _PLANS)
            self._stages(0 if self.timed_out else 1, plans, self.limit_seconds / 2)

    def _anneal(self, starts: Sequence[Recomputations], first_seed: int = 0) -> list[Recomputations]:
        """The plans that fit; each seed has its own start."""
        iterations = min(300 * self.instance.boundary, _ITERATIONS)
        plans = []
        for seed in range(first_seed, first_seed + _PLANS):
            found = anneal(self.instance, starts[seed % len(starts)], self.budget_bytes, iterations, seed)
            self._offer(found.again)
            self._offer(found.lowest)
            plans += [found.again] if found.again is not None else []
        return plans

    def _stages(self, reach: int, plans: Sequence[Recomputations], limit_seconds: float) -> None:
        stages = candidates(self.instance, reach, [*plans, *([self.best] if self.best else [])])
        answer = solve_stages(self.instance, self.budget_bytes, stages, limit_seconds, self.seconds)
        self.timed_out |= answer.timed_out
        self._offer(answer.again)


@dataclass(frozen=True)
class InstanceSolution:
    again: Recomputations | None
    """None where no plan was found to fit."""
    extra_seconds: float
    peak_bytes: int
    """Of the plan; where none fits, the lowest that was found."""
    class_bound_seconds: float | None
    """No plan of the interval program's class has less extra; None where it was not asked."""
    every_plan_bound_seconds: float | None
    """No plan at all has less extra."""
    seconds: float
    """Spent planning."""
    outcome: str


def plan(instance: Instance, budget_bytes: int, limit_seconds: float = 8.0, bounds: bool = True) -> InstanceSolution:
    """`limit_seconds` is for the solvers; everything else takes the same number of steps every time."""
    started = perf_counter()
    every = every_plan_bound(instance, budget_bytes) if bounds else None
    search = Search(instance, budget_bytes, limit_seconds)
    search.run(hopeless=every == inf)
    best, proven = search.best, search.proven
    if best is not None and every is not None and search.seconds <= every * (1 + 1e-6):
        proven = True
    return InstanceSolution(
        again=best,
        extra_seconds=search.seconds,
        peak_bytes=peak_bytes(instance, best if best is not None else search.lowest),
        class_bound_seconds=search.class_bound,
        every_plan_bound_seconds=search.seconds if proven and best is not None else every,
        seconds=perf_counter() - started,
        outcome=_words(best is not None, proven or every == inf, search.timed_out),
    )


def _words(found: bool, proven: bool, timed_out: bool) -> str:
    late = " A solver ran out of time, so another run may differ." if timed_out else ""
    if found:
        return ("The plan is proven optimal." if proven else "The plan fits; a faster one may exist.") + late
    if proven:
        return "No plan fits the budget; this is proven. Raise the budget."
    return "No plan was found to fit the budget. Raise the budget." + late
