"""The interval program on a joint graph: solve, replay exactly, correct what the replay showed, solve again.

What a moment holds besides saved values depends on the plan: what is recomputed lives there, and what is fused does
not. So each round takes the room from the last replay. A choice that does not fit with each value recomputed once is
tried again with the cut_points of the forward rebuilt first and the rest from there (`schedule.py`). Where one round's plan
fits with space to spare and another's does not fit, the next is halfway between. Of all that fit the fastest is taken.
"""

from __future__ import annotations

from functools import cached_property
from time import perf_counter

import numpy as np

from autockpt.passes.forecast import Candidate, Evaluator
from autockpt.passes.graph import Floats, Kind
from autockpt.passes.intervals.graph import IntervalGraph
from autockpt.passes.intervals.program import Answer, lp_bound, solve
from autockpt.passes.problem import Plan, cut_point_values

_PATIENT_ROUNDS = 5
"""With fewer rounds than these the first plan that fits is taken."""
METHOD = "interval program"
_TOLERANCE = 0.003
"""Of a step: a choice this close to the best is good enough before its replay."""
_USED = 0.995
"""A plan that uses so much of the budget needs no further round."""


class IntervalSearch:
    """Plans of the interval program's class for many budgets of one problem."""

    def __init__(
        self,
        evaluator: Evaluator,
        fastest: Plan,
        rounds: int,
        limit_seconds: float,
    ) -> None:
        self._evaluator, self._fastest = evaluator, fastest
        self._problem, self._simulator = evaluator.problem, evaluator.simulator
        self._graph = IntervalGraph(self._problem, evaluator.order)
        self._limit_seconds = limit_seconds
        self._tolerance = _TOLERANCE * sum(self._problem.seconds.values())
        self._rounds = rounds
        self._start: Floats | None = None
        self._solved: dict[int, Candidate | None] = {}
        self.timed_out = False
        """Whether a solver ran out of time: a faster machine might then find another plan."""

    def bound_seconds(self, budget_bytes: int) -> float:
        """What no plan of the class has less of; infinite where the class has none that fits."""
        found = lp_bound(self._graph.surest_intervals, budget_bytes - self._graph.unavoidable)
        return np.inf if found is None else found

    @property
    def least_bytes(self) -> int:
        """No plan of the class has a lower peak."""
        return int(self._graph.unavoidable.max(initial=0.0))

    def __call__(self, budget_bytes: int) -> Candidate | None:
        """The fastest plan that was found to fit; the same budget is solved once."""
        if budget_bytes not in self._solved:
            self._solved[budget_bytes] = self._search(budget_bytes)
        return self._solved[budget_bytes]

    def _search(self, budget_bytes: int) -> Candidate | None:
        best: Candidate | None = None
        fits: Floats | None = None
        over: Floats | None = None
        besides = self._besides_fastest
        seen = set()
        for _ in range(self._rounds):
            if self._limit_seconds <= 0:
                self.timed_out = True
                break
            answer = self._solve(budget_bytes - besides)
            if answer is None:
                # Too dark a view: halfway back to one that had a solution.
                over, besides = besides, (besides + (self._besides_fastest if fits is None else fits)) / 2
                continue
            self.timed_out |= answer.timed_out
            saved = self._saved(answer)
            if saved in seen:
                break
            seen.add(saved)
            candidate, live, replayed = self._replay(saved, budget_bytes)
            peak = int(live.max())
            if peak <= budget_bytes:
                fits = besides
                if best is None or candidate.seconds < best.seconds:
                    best = candidate
                if peak >= _USED * budget_bytes or self._rounds < _PATIENT_ROUNDS:
                    break
            else:
                over = besides
            now = np.where(live > 0, replayed, besides)
            besides = now if fits is None or over is None else (fits + over) / 2
        return best

    def _solve(self, room: Floats) -> Answer | None:
        """All solutions share one limit, so that planning as a whole has one."""
        started = perf_counter()
        answer = solve(self._graph.intervals, room, self._limit_seconds, None, self._tolerance)
        self._limit_seconds -= perf_counter() - started
        return answer

    def _replay(self, saved: frozenset[str], budget_bytes: int) -> tuple[Candidate, Floats, Floats]:
        """With each value recomputed once; or, where that does not fit and this is lower, the cut_points rebuilt first."""
        candidate = self._evaluator.saving(saved, METHOD)
        live, besides = self._graph.besides(self._simulator, candidate.plan)
        if live.max() <= budget_bytes or not self._cut_points - saved:
            return candidate, live, besides
        again = self._evaluator.saving(saved, METHOD, self._cut_points - saved)
        live_again, besides_again = self._graph.besides(self._simulator, again.plan)
        return (again, live_again, besides_again) if live_again.max() < live.max() else (candidate, live, besides)

    @cached_property
    def _cut_points(self) -> frozenset[str]:
        return cut_point_values(self._problem) - frozenset(self._problem.must_save)

    @property
    def _besides_fastest(self) -> Floats:
        if self._start is None:
            self._start = self._graph.besides(self._simulator, self._fastest)[1]
        return self._start

    def _saved(self, answer: Answer) -> frozenset[str]:
        """What crosses: values that are saved and that the backward or a recomputation reads."""
        intervals, names = self._graph.intervals, self._graph.names
        read = intervals.demanded.copy()
        read[intervals.reads[answer.again[intervals.reads[:, 1]], 0]] = True
        crossing = np.flatnonzero(answer.saved & read & np.isfinite(intervals.nbytes))
        by_name = self._problem.graph.by_name
        return frozenset(names[number] for number in crossing if by_name[names[number]].kind is not Kind.SYMBOL)
