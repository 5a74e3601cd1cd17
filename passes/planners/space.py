"""What all generators of one problem share: evaluated plans, cuts, the interval program, and estimates from them."""

from __future__ import annotations

from functools import cached_property

from autockpt.passes.forecast import Candidate, Evaluator
from autockpt.passes.intervals import IntervalSearch
from autockpt.passes.planners.cuts import CutHull
from autockpt.passes.planners.effort import Effort
from autockpt.passes.problem import Problem, boundary_bytes

CUT = "cut"
_NEARLY_FREE = 0.03
"""Cuts that recompute less than this share of a step are all evaluated, to find the fastest plan.

The linear objective does not see that recomputing saves memory traffic, or that a loop bound by traffic recomputes for
nothing: among cuts so close together only the clock of fused kernels can tell.
"""


class SearchSpace:
    def __init__(self, problem: Problem, effort: Effort | None = None, solve_seconds: float = 10.0) -> None:
        self.problem = problem
        self.effort = effort or Effort.for_graph(len(problem.graph.values))
        self.evaluator = Evaluator(problem)
        self.static_bytes = boundary_bytes(problem)
        """Live at the boundary in every plan."""
        self._solve_seconds = solve_seconds
        self._class_bounds: dict[int, float] = {}

    @cached_property
    def hull(self) -> CutHull:
        return CutHull(self.problem, self.effort.cut_prices)

    @cached_property
    def fastest_cut(self) -> Candidate:
        """The fastest of the cuts that recompute next to nothing."""
        first, *others = self.hull.cuts
        best = most = self.evaluator.saving(first.saved, CUT)
        for cut in others:
            if cut.seconds > first.seconds + _NEARLY_FREE * most.seconds:
                break
            best = min(best, self.evaluator.saving(cut.saved, CUT), key=lambda candidate: candidate.seconds)
        return best

    @cached_property
    def intervals(self) -> IntervalSearch:
        return IntervalSearch(self.evaluator, self.fastest_cut.plan, self.effort.interval_rounds, self._solve_seconds)

    @property
    def timed_out(self) -> bool:
        """Whether a solver's time limit decided anything: another run may then find another plan."""
        return "intervals" in vars(self) and self.intervals.timed_out

    def step_seconds(self, recompute_seconds: float) -> float:
        """Of a step with so much recomputation, as estimated from the fastest cut: least of any such plan, nearly."""
        base = self.fastest_cut
        return base.seconds + max(recompute_seconds - base.recompute_seconds, 0.0)

    def bound_seconds(self, budget_bytes: int) -> float:
        """Step seconds with the least recomputation that any plan within the budget needs."""
        return self.step_seconds(self.hull.bound_seconds(budget_bytes - self.static_bytes))

    def class_bound_seconds(self, budget_bytes: int) -> float:
        """The same for plans of the interval program's class: forward once, each recomputed value once."""
        if budget_bytes not in self._class_bounds:
            self._class_bounds[budget_bytes] = self.intervals.bound_seconds(budget_bytes)
        return max(self.step_seconds(self._class_bounds[budget_bytes]), self.bound_seconds(budget_bytes))
