"""A fast plan of an instance within a budget, and beside it what no plan can beat.

1. A budget that the plan without recomputation fits needs no search. A small instance goes to the exact search.
2. The interval program gives a plan, and the bound of its class of plans.
3. Where that program had to be tightened before its plan fitted, a few plans are annealed, and the stage program finds
   the best combination of their recomputations and of those in stages near the reads; this is repeated a few times.
4. The stage program searches stages further from the reads, less far where it ran out of time before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from time import perf_counter

from autockpt.passes.instances.anneal import anneal
from autockpt.passes.instances.astar import TooLarge, solve_exact
from autockpt.passes.instances.bound import every_plan_bound
from autockpt.passes.instances.instance import Instance, Recomputations, extra_seconds, peak_bytes
from autockpt.passes.instances.intervals import interval_plan, just_in_time
from autockpt.passes.instances.stage_program import Candidates, solve_stages

_MAX_EXACT = 14
"""Forward operations up to which the exact search is used."""
_ANNEALED_PLANS, _ROUNDS = 3, 3
"""Plans annealed in each round, and rounds of annealing and combining."""
_MAX_ITERATIONS = 8_000
"""Of annealing one plan."""
_MAX_SLOTS = 1_000_000
"""Beyond which neither annealing nor the stage program is worth its time."""


@dataclass(frozen=True)
class InstanceSolution:
    recomputed: Recomputations | None
    """None where no plan was found that fits."""
    extra_seconds: float
    peak_bytes: int
    """Of the plan; where none fits, the smallest peak of any plan found."""
    class_bound_seconds: float | None
    """No plan of the interval program's class has fewer extra seconds; None where that program was not solved."""
    every_plan_bound_seconds: float | None
    """No plan at all has fewer extra seconds; None where no bound was asked for."""
    planning_seconds: float
    outcome: str


def solve_instance(
    instance: Instance, budget_bytes: int, limit_seconds: float = 8.0, bounds: bool = True
) -> InstanceSolution:
    """`limit_seconds` limits the solvers; everything else takes the same number of steps in every run."""
    started = perf_counter()
    bound = every_plan_bound(instance, budget_bytes) if bounds else None
    search = Search(instance, budget_bytes, limit_seconds)
    search.run(infeasible=bound == inf)
    best, proven = search.best, search.proven
    if best is not None and bound is not None and search.seconds <= bound * (1 + 1e-6):
        proven = True
    return InstanceSolution(
        recomputed=best,
        extra_seconds=search.seconds,
        peak_bytes=peak_bytes(instance, best if best is not None else search.smallest),
        class_bound_seconds=search.class_bound,
        every_plan_bound_seconds=search.seconds if proven and best is not None else bound,
        planning_seconds=perf_counter() - started,
        outcome=_outcome(best is not None, proven or bound == inf, search.timed_out),
    )


def _outcome(found: bool, proven: bool, timed_out: bool) -> str:
    late = " A solver ran out of time, so another run may differ." if timed_out else ""
    if found:
        return ("The plan is proven optimal." if proven else "The plan fits; a faster one may exist.") + late
    if proven:
        return "No plan fits the budget; this is proven. Raise the budget."
    return "No plan was found to fit the budget. Raise the budget." + late


class Search:
    """The best plan so far, and whether it is proven to be the fastest."""

    def __init__(self, instance: Instance, budget_bytes: int, limit_seconds: float) -> None:
        self.instance, self.budget_bytes, self.limit_seconds = instance, budget_bytes, limit_seconds
        self.best: Recomputations | None = None
        self.seconds = inf
        self.smallest: Recomputations = instance.save_everything
        """The plan with the smallest peak, whether it fits or not."""
        self.class_bound: float | None = None
        self.proven = self.timed_out = False

    def run(self, infeasible: bool) -> None:
        """`infeasible`: it is proven that no plan fits, so only a small peak is searched for."""
        self._offer(self.instance.save_everything)
        if self.best is not None:
            self.proven, self.class_bound = True, 0.0
        elif infeasible:
            self._anneal([self._recompute_everything()])
        elif not self._solve_exactly():
            self._solve_programs()

    def _offer(self, recomputed: Recomputations | None) -> None:
        if recomputed is None:
            return
        peak, seconds = peak_bytes(self.instance, recomputed), extra_seconds(self.instance, recomputed)
        if peak < peak_bytes(self.instance, self.smallest):
            self.smallest = recomputed
        if peak <= self.budget_bytes and seconds < self.seconds:
            self.best, self.seconds = recomputed, seconds

    def _recompute_everything(self) -> Recomputations:
        return just_in_time(self.instance, ~self.instance.runs_once[: self.instance.boundary])

    def _solve_exactly(self) -> bool:
        """Whether the exact search was used, and ended with a proof."""
        if self.instance.boundary > _MAX_EXACT:
            return False
        try:
            self._offer(solve_exact(self.instance, self.budget_bytes))
        except TooLarge:
            return False
        self.proven = True
        if self.best is None:
            self._anneal([self.instance.save_everything])
        return True

    def _solve_programs(self) -> None:
        intervals = interval_plan(self.instance, self.budget_bytes, self.limit_seconds / 4)
        self.class_bound, self.timed_out = intervals.bound_seconds, intervals.timed_out
        self._offer(intervals.recomputed)
        if (self.instance.boundary + 1) * (self.instance.count - self.instance.boundary) > _MAX_SLOTS:
            return
        if intervals.recomputed is not None and len(intervals.tried) == 1:
            self._solve_stages(2, [intervals.recomputed], self.limit_seconds / 4)
            return
        self._anneal_and_combine([*intervals.tried[:1], *intervals.tried[-1:], self._recompute_everything()])
        self._solve_stages(2 if self.timed_out else 4, [], self.limit_seconds / 2)

    def _anneal_and_combine(self, starts: Sequence[Recomputations]) -> None:
        for number in range(_ROUNDS):
            plans = self._anneal(starts if self.best else [*starts, self.smallest], number * _ANNEALED_PLANS)
            self._solve_stages(0 if self.timed_out else 1, plans, self.limit_seconds / 2)

    def _anneal(self, starts: Sequence[Recomputations], first_seed: int = 0) -> list[Recomputations]:
        """Anneal a few plans, each with its own seed and start; returns those that fit."""
        iterations = min(300 * self.instance.boundary, _MAX_ITERATIONS)
        plans = []
        for seed in range(first_seed, first_seed + _ANNEALED_PLANS):
            found = anneal(self.instance, starts[seed % len(starts)], self.budget_bytes, iterations, seed)
            self._offer(found.fastest)
            self._offer(found.smallest)
            plans += [found.fastest] if found.fastest is not None else []
        return plans

    def _solve_stages(self, max_readers: int, plans: Sequence[Recomputations], limit_seconds: float) -> None:
        stages = candidates(self.instance, max_readers, [*plans, *([self.best] if self.best else [])])
        found = solve_stages(self.instance, self.budget_bytes, stages, limit_seconds, self.seconds)
        self.timed_out |= found.timed_out
        self._offer(found.recomputed)


def candidates(instance: Instance, max_readers: int, plans: Iterable[Recomputations] = ()) -> Candidates:
    """The stages to offer the stage program: those of backward reads up to `max_readers` readers away, and of `plans`.

    With `max_readers` 0 a value may be recomputed where the backward reads it; with 1 also where the backward reads
    one of its readers, for which it may be needed; and so on. The plans are included so that the program can only
    improve on them.
    """
    boundary = instance.boundary
    found = [{reader - boundary for reader in readers if reader >= boundary} for readers in instance.readers[:boundary]]
    for _ in range(max_readers):
        found = [own.union(*(found[r] for r in instance.readers[v] if r < boundary)) for v, own in enumerate(found)]
    for recomputed in plans:
        for stage, operations in enumerate(recomputed):
            for value in operations:
                found[value].add(stage)
    return tuple(() if instance.runs_once[v] else tuple(sorted(stages)) for v, stages in enumerate(found))
