"""The plans of a problem from the minimum peak to the fastest step, folded over a tuple of generators.

Every generator's plans depend on the graph alone, and the fastest of all that fit is taken, so a larger budget gives no
slower plan. Most plans are never made: a generator stops where its own bound is no better than what was found before.

Generators leave slack: an eviction descent drops groups of values and looks at one peak at a time, the interval program
prices operations one by one. So what they find at a grid of budgets is filled up: values are saved instead of
recomputed, one after the other, while the plan fits and its fused step gets faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from math import inf

from autockpt.passes.forecast import Candidate, Simulator
from autockpt.passes.generators import (
    MOST_GAIN,
    Cuts,
    Effort,
    Evictions,
    Exact,
    Generator,
    GeneratorFactory,
    IntervalProgram,
    Offloads,
    SaveEverything,
    SearchSpace,
    TwoLevel,
    by_peak,
    faster,
    fill,
)
from autockpt.passes.problem import Problem

PLANNERS: Mapping[str, tuple[GeneratorFactory, ...]] = {
    "auto": (Exact, SaveEverything, Cuts, IntervalProgram, Evictions, TwoLevel),
    "interval_program": (SaveEverything, Cuts, IntervalProgram),
    "min_cut": (SaveEverything, Cuts),
    "save_everything": (SaveEverything,),
}
"""The generators behind each value of the option `planner`."""


class Frontier:
    """All generators of one problem, and the candidates they find."""

    def __init__(
        self,
        problem: Problem,
        generators: Sequence[GeneratorFactory] = PLANNERS["auto"],
        solve_seconds: float = 60.0,
        effort: Effort | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.problem = problem
        self.progress = progress
        """Called with a line of text before each search; a caller that shows more may set another."""
        self.space = SearchSpace(problem, effort, solve_seconds)
        if problem.host_bytes and self.simulator.link:
            generators = (*generators, partial(Offloads, from_intervals=IntervalProgram in generators))
        self.generators = tuple(self.space.shared(make) for make in generators)
        self._found: dict[int, Candidate | None] = {}
        self._filled: dict[int, list[Candidate]] = {}
        """By budget: what the generators found, and all plans tried to fill that up."""

    @property
    def simulator(self) -> Simulator:
        return self.space.evaluator.simulator

    @cached_property
    def fastest(self) -> Candidate:
        """The fastest plan of all families, whatever its peak."""
        found = [candidate for generator in self._each("fastest plan") if (candidate := generator.fastest())]
        return min(found, key=lambda candidate: (candidate.seconds, candidate.peak_bytes))

    @cached_property
    def lowest(self) -> Candidate:
        """The plan with the lowest peak of all families; the fastest of those."""
        found = [candidate for generator in self._each("minimum peak") if (candidate := generator.lowest())]
        return min((*found, self.fastest), key=by_peak)

    @property
    def lowest_known(self) -> Candidate:
        """The lowest peak of all plans evaluated so far, in searches at a budget too."""
        return min((self.lowest, *self.space.evaluator.evaluated), key=by_peak)

    def within(self, budget_bytes: int) -> Candidate | None:
        """The fastest plan found whose peak fits."""
        if self.fastest.peak_bytes <= budget_bytes:
            return self.fastest
        best = self._found_within(budget_bytes)
        # A search at a lower budget of the grid may have found a plan over that budget which fits this one.
        for candidate in self.space.evaluator.evaluated:
            if candidate.peak_bytes <= budget_bytes:
                best = faster(best, candidate)
        return self._filled_within(budget_bytes, best) if best and self.space.effort.fill_replays else best

    def _found_within(self, budget_bytes: int) -> Candidate | None:
        """The fastest that the generators find."""
        if budget_bytes not in self._found:
            best: Candidate | None = None
            for generator in self._each("plan for the budget"):
                best = faster(best, generator.within(budget_bytes, best.seconds if best else inf))
            self._found[budget_bytes] = best
        return self._found[budget_bytes]

    def _filled_within(self, budget_bytes: int, best: Candidate) -> Candidate:
        """The fastest of this plan and those at budgets of the grid, filled up."""
        for grid_bytes in self.space.grid_below(budget_bytes):
            start = self._found_within(grid_bytes)
            # It gets slower as the budget falls: no lower budget of the grid can beat it either.
            if start is None or start.seconds >= MOST_GAIN * best.seconds:
                break
            if grid_bytes not in self._filled:
                self._filled[grid_bytes] = list(fill(self.space, start, grid_bytes))
            fitting = [candidate for candidate in self._filled[grid_bytes] if candidate.peak_bytes <= budget_bytes]
            best = min((best, *fitting), key=lambda candidate: candidate.seconds)
        return best

    def _each(self, purpose: str) -> Iterator[Generator]:
        """The generators in turn, each announced: together they may take minutes."""
        for number, generator in enumerate(self.generators, 1):
            self.progress(f"{purpose}, {number} of {len(self.generators)}")
            yield generator

    def next_faster_bytes(self, candidate: Candidate) -> int | None:
        """The lowest peak of all evaluated plans that are faster than this one; None where none is."""
        faster_ones = [other for other in self.space.evaluator.evaluated if other.seconds < candidate.seconds]
        return min((other.peak_bytes for other in faster_ones), default=None)
