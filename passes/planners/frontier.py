"""The plans in question, and which of them is taken for a budget.

Cuts at every price that matters; the interval program at a ladder of budgets; ways down from two of the cuts, one eviction
after the other; nested plans below the block floor. All of these depend on the graph alone, never on the budget, and
the fastest plan of all that fit is taken, so a larger budget never gives a slower plan. Most of them are never made: a
rung whose bound is no better than what is at hand cannot help, nor can a way that is slower already.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import inf

from autockpt.passes.forecast import Candidate, Simulator
from autockpt.passes.intervals import IntervalSearch
from autockpt.passes.planners.cuts import Hull
from autockpt.passes.planners.evictions import Way
from autockpt.passes.planners.exact import SmallSearch
from autockpt.passes.planners.schedule import Scheduler, completed, orders
from autockpt.passes.planners.two_level import Nest, nests
from autockpt.passes.problem import Plan, Problem, boundary_bytes

PLANNERS = ("auto", "interval_program", "min_cut", "save_everything")
"""By what they add to the one after them: exact search and nested plans, the interval program, cuts. The last plans nothing:
whatever the backward reads is saved, to compare with."""

_RUNGS = 20
"""Of the ladder of budgets, from the fastest plan's peak down to what no plan can avoid."""
_LARGE = 2800
"""Values from which a graph gets a quarter of the rungs."""


class Frontier:
    """All candidates of a problem, their peaks forecast only when asked for."""

    def __init__(self, problem: Problem, planner: str = "auto", solve_seconds: float = 10.0) -> None:
        self.problem = problem
        self._planner = planner
        self.simulator = Simulator(problem)
        # Weight gradients first, where no side effect forbids it.
        self._order = orders(problem.graph)[-1]
        self._scheduler = Scheduler(problem.graph, self._order)
        self._solve_seconds = solve_seconds
        self._peaks: dict[Plan, int] = {}
        self._climbed: dict[int, Candidate | None] = {}
        self._nested: dict[Nest, Candidate] = {}
        self._bounds: dict[int, float] = {}
        self._boundary_bytes = boundary_bytes(problem)

    @cached_property
    def _small(self) -> SmallSearch | None:
        return SmallSearch.of(self.problem, self._order) if self._planner == "auto" else None

    @cached_property
    def hull(self) -> Hull:
        return Hull(self.problem, lambda saved: self._candidate(self._scheduler(saved), "cut"))

    @cached_property
    def fastest(self) -> Candidate:
        return self._everything if self._planner == "save_everything" else self.hull.cuts[0]

    @cached_property
    def _everything(self) -> Candidate:
        return self.priced(completed(self.problem, self.problem.graph.backward_reads), "keep everything")

    def priced(self, saved: frozenset[str], method: str) -> Candidate:
        """What somebody else would keep, as one of these plans."""
        return self._candidate(self._scheduler(saved), method)

    @cached_property
    def lowest(self) -> Candidate:
        """The candidate with the lowest peak; the fastest of those."""
        if self._planner == "save_everything":
            return self.fastest
        if self._small is not None and (plan := self._small.lowest(self.peak_bytes(self.fastest))):
            return self._candidate(plan, "exact")
        others: list[Candidate] = []
        if self._planner == "auto":
            others = [self._nest(nest) for nest in self._nests if nest.is_whole]
            # The way from the fastest plan would end here too, after many more steps.
            for way in self._ways[-1:]:
                way.first_within(0, inf)
                others += way.candidates
        return min((*self.hull.cuts, *others), key=self._by_peak)

    @property
    def lowest_known(self) -> Candidate:
        """Lower still, where a search for some budget came by a lower one."""
        if self._planner == "save_everything":
            return self.fastest
        return min((self.lowest, *self._known()), key=self._by_peak)

    def _by_peak(self, candidate: Candidate) -> tuple[int, float]:
        return self.peak_bytes(candidate), candidate.seconds

    def within(self, budget_bytes: int) -> Candidate | None:
        """The fastest candidate whose peak fits."""
        if self.peak_bytes(self.fastest) <= budget_bytes:
            return self.fastest
        if self._planner == "save_everything":
            return None
        if self._planner == "min_cut":
            return self._from_cuts(budget_bytes)
        if self._small is not None:
            plan, proven = self._small(budget_bytes)
            if proven:
                return self._candidate(plan, "exact") if plan else None
        return self._search(budget_bytes)

    def _search(self, budget_bytes: int) -> Candidate | None:
        best = self._from_cuts(budget_bytes)
        for rung in self._rungs_below(budget_bytes):
            if self._cannot_beat(best, rung):
                break
            best = _faster(best, self._climb(rung))
        if self._planner == "interval_program":
            return best
        for way in self._ways:
            best = _faster(best, way.first_within(budget_bytes, best.seconds if best else inf))
        return _faster(best, self._from_nests(budget_bytes, best))

    def bound_seconds(self, budget_bytes: int) -> float:
        """What no plan at all has less of."""
        return self.hull.bound_seconds(budget_bytes - self._boundary_bytes)

    def class_bound_seconds(self, budget_bytes: int) -> float:
        """What no plan of the interval program's class has less of: the forward once, what is recomputed once."""
        if budget_bytes not in self._bounds:
            self._bounds[budget_bytes] = self.interval_search.bound_seconds(budget_bytes)
        return max(self._bounds[budget_bytes], self.bound_seconds(budget_bytes))

    def next_faster_bytes(self, candidate: Candidate) -> int | None:
        """The lowest peak of all known plans that are faster than this one; None where none is."""
        faster = [other for other in self._known() if other.seconds < candidate.seconds]
        return min((self.peak_bytes(other) for other in faster), default=None)

    def _known(self) -> Iterator[Candidate]:
        """All that were made so far and whose peak is known."""
        yield from self.hull.cuts
        yield from (nest for nest in self._nested.values() if nest.plan in self._peaks)
        yield from filter(None, self._climbed.values())
        if "_ways" in vars(self):
            yield from (candidate for way in self._ways for candidate in way.candidates)

    def peak_bytes(self, candidate: Candidate) -> int:
        if candidate.plan not in self._peaks:
            self._peaks[candidate.plan] = self.simulator.peak_bytes(candidate.plan)
        return self._peaks[candidate.plan]

    @property
    def timed_out(self) -> bool:
        """Whether a solver's time limit had a say: another run may then find another plan."""
        return "interval_search" in vars(self) and self.interval_search.timed_out

    @cached_property
    def interval_search(self) -> IntervalSearch:
        return IntervalSearch(
            self.problem,
            self._order,
            self.simulator,
            lambda saved, durable: self._candidate(self._scheduler(saved, durable), "interval program"),
            self.fastest,
            self._solve_seconds,
        )

    def _rungs_below(self, budget_bytes: int) -> Iterator[int]:
        """Budgets of the ladder, the highest that is not above this one first."""
        top, bottom = self.peak_bytes(self.fastest), self.interval_search.least_bytes
        count = _RUNGS if len(self.problem.graph.values) < _LARGE else _RUNGS // 4
        rungs = (bottom + (top - bottom) * rung // count for rung in range(count - 1, -1, -1))
        return (rung for rung in rungs if rung <= budget_bytes)

    def _climb(self, rung: int) -> Candidate | None:
        if rung not in self._climbed:
            found = self.interval_search(rung)
            self._climbed[rung] = found[0] if found else None
            if found:
                self._peaks[found[0].plan] = found[1]
        return self._climbed[rung]

    def _cannot_beat(self, best: Candidate | None, rung: int) -> bool:
        """Whether neither this rung nor any below it has a faster plan."""
        known = best.seconds if best else inf
        return self.bound_seconds(rung) >= known or self.class_bound_seconds(rung) >= known

    def _from_cuts(self, budget_bytes: int) -> Candidate | None:
        room = budget_bytes - self._boundary_bytes
        fitting = (cut for cut in self.hull.cuts if cut.saved_bytes <= room and self.peak_bytes(cut) <= budget_bytes)
        return next(fitting, None)

    def _from_nests(self, budget_bytes: int, best: Candidate | None) -> Candidate | None:
        """The fastest nested plan that fits, if it is faster than the best."""
        room, known = budget_bytes - self._boundary_bytes, best.seconds if best else inf
        likely = [(self._added_bytes(nest.saved), nest) for nest in self._nests]
        likely = [(size, nest) for size, nest in likely if size <= room and self.hull.bound_seconds(size) < known]
        plans = sorted((self._nest(nest) for _, nest in likely), key=lambda c: (c.seconds, c.saved_bytes))
        faster = (candidate for candidate in plans if candidate.seconds < known)
        return next((candidate for candidate in faster if self.peak_bytes(candidate) <= budget_bytes), None)

    @cached_property
    def _ways(self) -> tuple[Way, ...]:
        if len(self.problem.graph.values) >= _LARGE:
            return ()
        lowest_cut = min(self.hull.cuts, key=self._by_peak)
        starts = dict.fromkeys([self.fastest.plan, lowest_cut.plan])
        return tuple(Way(self.problem, self.simulator, start, self._reached) for start in starts)

    def _reached(self, plan: Plan, peak_bytes: int) -> Candidate:
        self._peaks[plan] = peak_bytes
        return self._candidate(plan, "evictions")

    @cached_property
    def _nests(self) -> tuple[Nest, ...]:
        return tuple(nests(self.problem, self.fastest.plan.saved, self.hull.cuts[-1].plan.saved))

    def _nest(self, nest: Nest) -> Candidate:
        if nest not in self._nested:
            self._nested[nest] = self._candidate(self._scheduler(nest.saved, nest.durable), "nested")
        return self._nested[nest]

    def _candidate(self, plan: Plan, method: str) -> Candidate:
        saved_bytes = self._added_bytes(plan.saved)
        seconds = self.simulator.recompute_seconds(plan)
        return Candidate(
            plan, saved_bytes, seconds, seconds + sum(self.problem.save_seconds[name] for name in plan.saved), method
        )

    def _added_bytes(self, saved: frozenset[str]) -> int:
        graph = self.problem.graph
        return sum(graph.bytes_of(name) for name in saved if name not in graph.output_storages)


def _faster(one: Candidate | None, other: Candidate | None) -> Candidate | None:
    if one is None or other is None:
        return one or other
    return other if other.seconds < one.seconds else one
