"""What all generators of one problem share: evaluated plans, cuts, the interval program, estimates from them, and
how much work each may spend."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, TypeVar

from autockpt.passes.forecast import Candidate, Evaluator
from autockpt.passes.generators.cuts import CutHull
from autockpt.passes.generators.evictor import Evictor
from autockpt.passes.generators.hosting import with_tagged
from autockpt.passes.intervals import HostedBound, HostedIntervals, IntervalSearch
from autockpt.passes.problem import PlanWriter, Problem, boundary_bytes, may_offload

T = TypeVar("T")
CUT = "cut"
_NEARLY_FREE = 0.03
"""Cuts that recompute less than this share of a step are all evaluated, to find the fastest plan.

The linear objective does not see that recomputing saves memory traffic, or that a loop bound by traffic recomputes for
nothing: among cuts so close together only the clock of fused kernels can tell.
"""

LARGE_GRAPH = 2800
"""Values from which one replay takes tenths of a second, and every search gets fewer of them."""
_REPLAYED_VALUES = 60_000
"""Values that one eviction descent replays, all its steps together."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much work the generators may spend on a graph, fixed by the number of its values.

    Counted in cuts, solves and replays, never in seconds, so that the same graph gets the same plan on any machine.
    """

    cut_prices: float = inf
    """Prices of a byte at which the graph is cut."""
    grid_budgets: int = 20
    """Budgets at which the interval program is solved and plans are filled up, from the fastest plan's peak down."""
    interval_rounds: int = 5
    """Solutions of the interval program for one budget, each corrected by the replay of the last."""
    eviction_steps: int = 100
    """Steps of one eviction descent; 0 leaves the descents out."""
    fill_replays: int = 24
    """Plans that are replayed to fill up the one at a budget of the grid; 0 leaves that out."""
    two_level_plans: bool = True
    """Whether two-level plans are tried in all their shapes, or only near the square root of the depth."""
    offload_starts: int = 8
    """Cuts from which values are moved to the host."""
    frontier_points: int = 9
    """Plans between the minimum peak and the fastest that a report shows."""

    @classmethod
    def for_graph(cls, values: int) -> Effort:
        if values < LARGE_GRAPH:
            return cls(eviction_steps=_REPLAYED_VALUES // max(values, 1))
        return cls(
            cut_prices=7,
            grid_budgets=5,
            interval_rounds=3,
            eviction_steps=0,
            fill_replays=0,
            two_level_plans=False,
            frontier_points=5,
        )


class SearchSpace:
    def __init__(self, problem: Problem, effort: Effort | None = None, solve_seconds: float = 60.0) -> None:
        self.problem = problem
        self.effort = effort or Effort.for_graph(len(problem.graph.values))
        self.evaluator = Evaluator(problem, with_tagged)
        self.static_bytes = boundary_bytes(problem)
        """Live at the boundary in every plan."""
        self._solve_seconds = solve_seconds
        self._class_bounds: dict[int, float] = {}
        self._hosted_class_bounds: dict[int, float] = {}
        self._shared: dict[Hashable, Any] = {}

    def shared(self, make: Callable[[SearchSpace], T]) -> T:
        """A generator of this space. Each is made once: others may search on from the plans that it found."""
        if make not in self._shared:
            self._shared[make] = make(self)
        generator: T = self._shared[make]
        return generator

    @cached_property
    def writer(self) -> PlanWriter:
        return PlanWriter(self.problem)

    @cached_property
    def evictor(self) -> Evictor:
        return Evictor(self.problem, self.evaluator.simulator, self.writer)

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

    @cached_property
    def hosted_intervals(self) -> HostedIntervals | None:
        """None where nothing may be offloaded."""
        link = self.evaluator.simulator.link
        if link is None or not self.problem.host_bytes:
            return None
        return HostedIntervals(self.evaluator, link, self.fastest_cut.plan)

    @cached_property
    def _hosted_bound(self) -> HostedBound | None:
        link = self.evaluator.simulator.link
        if link is None or self.hosted_intervals is None:
            return None
        names = (value.name for value in self.problem.graph.values if may_offload(self.problem, value.name))
        most_bytes = min(sum(map(self.problem.graph.bytes_of, names)), self.problem.host_bytes)
        return HostedBound(self.hull.bound_seconds, link, self.hosted_intervals.spans, most_bytes)

    def grid_below(self, budget_bytes: int) -> Iterator[int]:
        """Budgets of a grid that depends on the graph alone, those that are not above this one, the highest first."""
        top, bottom = self.fastest_cut.peak_bytes, self.intervals.least_bytes
        count = self.effort.grid_budgets
        grid = (bottom + (top - bottom) * number // count for number in range(count - 1, -1, -1))
        return (found for found in grid if found <= budget_bytes)

    @property
    def timed_out(self) -> bool:
        """Whether a solver's time limit decided anything: another run may then find another plan."""
        return "intervals" in vars(self) and self.intervals.timed_out

    def step_seconds(self, recompute_seconds: float) -> float:
        """Of a step with so much recomputation, as estimated from the fastest cut: least of any such plan, nearly."""
        base = self.fastest_cut
        return base.seconds - base.exposed_seconds + max(recompute_seconds - base.recompute_seconds, 0.0)

    def bound_seconds(self, budget_bytes: int) -> float:
        """Step seconds with the least recomputation that any plan without copies needs within the budget."""
        return self.step_seconds(self.hull.bound_seconds(budget_bytes - self.static_bytes))

    def class_bound_seconds(self, budget_bytes: int) -> float:
        """The same for plans of the interval program's class: forward once, each recomputed value once."""
        if budget_bytes not in self._class_bounds:
            self._class_bounds[budget_bytes] = self.intervals.bound_seconds(budget_bytes)
        return max(self.step_seconds(self._class_bounds[budget_bytes]), self.bound_seconds(budget_bytes))

    def hosted_bound_seconds(self, budget_bytes: int) -> float:
        """Step seconds with the least recomputation and waiting that any plan needs within the budget."""
        if self._hosted_bound is None:
            return self.bound_seconds(budget_bytes)
        return self.step_seconds(self._hosted_bound.seconds(budget_bytes - self.static_bytes))

    def hosted_class_bound_seconds(self, budget_bytes: int) -> float:
        """The same for the interval program's class with copies."""
        if self.hosted_intervals is None:
            return self.class_bound_seconds(budget_bytes)
        if budget_bytes not in self._hosted_class_bounds:
            self._hosted_class_bounds[budget_bytes] = self.hosted_intervals.bound_seconds(budget_bytes)
        found = self.step_seconds(self._hosted_class_bounds[budget_bytes])
        return max(found, self.hosted_bound_seconds(budget_bytes))
