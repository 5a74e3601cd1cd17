"""Plans by the interval program: solve, replay the plan, correct the slack by what the replay held, solve again.

The slack for saved values at a moment is the budget less the other bytes there, and those depend on the plan:
recomputed values are live, values inside a fused kernel are not. So each round takes the other bytes from the replay of
the last. A plan that does not fit with every value recomputed once is also tried in two levels: the cut points of the
forward are rebuilt first, and everything else from them. Of all plans that fit, the fastest is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

import numpy as np

from autockpt.passes.forecast import Candidate, Evaluator
from autockpt.passes.graph import Floats, Kind
from autockpt.passes.intervals.graph import IntervalGraph
from autockpt.passes.intervals.program import IntervalSolution, lp_bound, solve_intervals
from autockpt.passes.intervals.values import Assignment
from autockpt.passes.problem import Plan, Problem, cut_point_values

METHOD = "interval program"
_ROUNDS_TO_IMPROVE = 5
"""With fewer rounds than these, the first plan that fits is taken."""
_TOLERANCE = 0.003
"""Share of a step's seconds by which a solution may miss its bound: its replay changes more than that."""
_MOST_NODES = 1000
"""Of one integer program. Those of the model zoo are solved at the root."""
_USED = 0.995
"""A plan that uses this share of the budget needs no further round."""


class IntervalSearch:
    """Plans for many budgets of one problem, in which the forward and each recomputed value run once."""

    def __init__(self, evaluator: Evaluator, fastest: Plan, rounds: int, limit_seconds: float) -> None:
        self._evaluator, self._fastest, self._rounds = evaluator, fastest, rounds
        self._problem = evaluator.problem
        self._graph = IntervalGraph(self._problem, evaluator.order)
        self._limit_seconds = limit_seconds
        self._tolerance_seconds = _TOLERANCE * sum(self._problem.seconds.values())
        self._solved: dict[tuple[int, int | None], Candidate | None] = {}
        self.timed_out = False
        """Whether a solver ran out of time: another run may then find another plan."""

    def bound_seconds(self, budget_bytes: int) -> float:
        """Recomputation that every plan of the class needs at this budget; infinite where none of them fits."""
        bound = lp_bound(self._graph.shortest_intervals, budget_bytes - self._graph.unavoidable_bytes)
        return np.inf if bound is None else bound

    @property
    def least_bytes(self) -> int:
        """No plan of the class has a lower peak."""
        return int(self._graph.unavoidable_bytes.max(initial=0.0))

    def __call__(self, budget_bytes: int, saved_bytes: int | None = None) -> Candidate | None:
        """The fastest plan that was found to fit, and that saves at most `saved_bytes`. Each is solved once."""
        caps = budget_bytes, saved_bytes
        if caps not in self._solved:
            self._solved[caps] = self._search(*caps)
        return self._solved[caps]

    def _search(self, budget_bytes: int, saved_bytes: int | None) -> Candidate | None:
        best: Candidate | None = None
        assumption = _Assumption(self._other_bytes_of_fastest)
        tried: set[frozenset[str]] = set()
        for _ in range(self._rounds):
            if self._limit_seconds <= 0:
                self.timed_out = True
                break
            solution = self._solve(self._slack(budget_bytes - assumption.other_bytes, saved_bytes))
            if solution is None:
                assumption.has_no_solution()
                continue
            saved = saved_names(self._problem, self._graph, solution)
            if saved in tried:
                break
            tried.add(saved)
            replayed = self._replay(saved, budget_bytes)
            fits = replayed.peak_bytes <= budget_bytes
            if fits:
                if best is None or replayed.candidate.seconds < best.seconds:
                    best = replayed.candidate
                if replayed.peak_bytes >= _USED * budget_bytes or self._rounds < _ROUNDS_TO_IMPROVE:
                    break
            assumption.correct(replayed, fits)
        return best

    def _slack(self, slack_bytes: Floats, saved_bytes: int | None) -> Floats:
        """At the boundary no more than `saved_bytes`: every saved value is held there."""
        if saved_bytes is not None:
            around = slice(max(self._graph.boundary - 1, 0), self._graph.boundary + 1)
            slack_bytes[around] = np.minimum(slack_bytes[around], saved_bytes)
        return slack_bytes

    def _solve(self, slack_bytes: Floats) -> IntervalSolution | None:
        """All budgets together share one time limit."""
        started = perf_counter()
        solution = solve_intervals(
            self._graph.intervals, slack_bytes, self._limit_seconds, self._tolerance_seconds, _MOST_NODES
        )
        self._limit_seconds -= perf_counter() - started
        self.timed_out |= solution is not None and solution.timed_out
        return solution

    def _replay(self, saved: frozenset[str], budget_bytes: int) -> _Replayed:
        """Every value recomputed once; or in two levels, where that does not fit and two levels have a lower peak."""
        once = self._replayed(self._evaluator.saving(saved, METHOD))
        rebuilt_first = self._cut_points - saved
        if once.peak_bytes <= budget_bytes or not rebuilt_first:
            return once
        two_levels = self._replayed(self._evaluator.saving(saved, METHOD, rebuilt_first))
        return two_levels if two_levels.peak_bytes < once.peak_bytes else once

    def _replayed(self, candidate: Candidate) -> _Replayed:
        return _Replayed(candidate, *self._graph.live_and_other_bytes(self._evaluator.simulator, candidate.plan))

    @cached_property
    def _cut_points(self) -> frozenset[str]:
        return cut_point_values(self._problem) - frozenset(self._problem.must_save)

    @cached_property
    def _other_bytes_of_fastest(self) -> Floats:
        return self._graph.live_and_other_bytes(self._evaluator.simulator, self._fastest)[1]


def saved_names(problem: Problem, graph: IntervalGraph, solution: IntervalSolution | Assignment) -> frozenset[str]:
    """Values that the solution saves and that the backward or a recomputation reads."""
    intervals, names = graph.intervals, graph.names
    sources, targets = intervals.reads[:, 0], intervals.reads[:, 1]
    read = intervals.needed_by_backward.copy()
    read[sources[solution.recomputed[targets]]] = True
    saved = np.flatnonzero(solution.saved & read & np.isfinite(intervals.nbytes))
    by_name = problem.graph.by_name
    return frozenset(names[value] for value in saved if by_name[names[value]].kind is not Kind.SYMBOL)


@dataclass(frozen=True, eq=False)
class _Replayed:
    candidate: Candidate
    live_bytes: Floats
    """At each moment."""
    other_bytes: Floats
    """Those of them that are not of saved values."""

    @property
    def peak_bytes(self) -> int:
        return int(self.live_bytes.max())


class _Assumption:
    """Bytes besides saved values at each moment, as assumed for the next solve.

    Follows the last replay, until one assumption led to a plan that fits and another did not: then it is their mean.
    """

    def __init__(self, start: Floats) -> None:
        self.other_bytes = start
        self._start = start
        self._fitted: Floats | None = None
        self._failed: Floats | None = None

    def has_no_solution(self) -> None:
        """It was too high: go halfway back to one that had a solution."""
        solvable = self._start if self._fitted is None else self._fitted
        self._failed, self.other_bytes = self.other_bytes, (self.other_bytes + solvable) / 2

    def correct(self, replayed: _Replayed, fits: bool) -> None:
        if fits:
            self._fitted = self.other_bytes
        else:
            self._failed = self.other_bytes
        if self._fitted is not None and self._failed is not None:
            self.other_bytes = (self._fitted + self._failed) / 2
        else:
            # No kernel was counted at a moment without live bytes: nothing was learned of it.
            self.other_bytes = np.where(replayed.live_bytes > 0, replayed.other_bytes, self.other_bytes)
