"""Plans that wait on the host for part of what they save: from plans without copies, by `Hosting`.

The plans to start from depend on the graph alone: cuts, which trade bytes for recomputation, from the fastest to the
lowest, and interval programs, which need fewer bytes for as much. Evicted and two-level plans are not: they recompute
more than copies cost, or there is no link worth using. Interval programs with a link (`intervals/hosted_program`) say
what to recompute and what to offload at once, at a grid of budgets; there the moves start from what they offload.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

from autockpt.passes.forecast import Candidate
from autockpt.passes.generators.generator import SaveEverything, by_peak, faster
from autockpt.passes.generators.hosting import Hosting
from autockpt.passes.generators.space import CUT, SearchSpace

OFFLOAD = "offload"
_INTERVAL_STARTS = 5


@dataclass(frozen=True)
class Offloads:
    """Values moved to the host from plans that save much, where the step waits for less than it would recompute."""

    space: SearchSpace
    from_intervals: bool = False
    """Whether interval programs are solved to start from, too."""

    @cached_property
    def _starts(self) -> tuple[Candidate, ...]:
        """Fastest first; none without a link or where nothing may be offloaded."""
        if self.space.evaluator.simulator.link is None or not self.space.problem.host_bytes:
            return ()
        cuts = self.space.hull.cuts
        step = max(-(-len(cuts) // self.space.effort.offload_starts), 1)
        found = [self.space.evaluator.saving(cut.saved, CUT) for cut in cuts[::step]]
        if self.from_intervals:
            grid = tuple(self.space.grid_below(self.space.fastest_cut.peak_bytes))
            solved = map(self.space.intervals, grid[:: max(len(grid) // _INTERVAL_STARTS, 1)])
            found += [plan for plan in solved if plan is not None]
        found += [SaveEverything(self.space).lowest(), self.space.fastest_cut]
        return tuple(sorted({each.plan: each for each in found}.values(), key=lambda each: each.seconds))

    @cached_property
    def _hosting(self) -> dict[int, Hosting]:
        return {}

    def fastest(self) -> None:
        """Copies make no plan faster."""
        return

    def within(self, budget_bytes: int, beat_seconds: float) -> Candidate | None:
        best: Candidate | None = None
        for number, start in enumerate(self._starts):
            if start.seconds >= beat_seconds:
                break
            plan = self._from(number).fitted(budget_bytes, beat_seconds - start.seconds)
            if plan is None or not plan.offloaded:
                continue
            found = self.space.evaluator.evaluate(plan, OFFLOAD)
            if found.peak_bytes <= budget_bytes and found.seconds < beat_seconds:
                best, beat_seconds = faster(best, found), found.seconds
        return self._from_programs(budget_bytes, beat_seconds) or best

    def _from_programs(self, budget_bytes: int, beat_seconds: float) -> Candidate | None:
        """The fastest of the plans that the program with a link gives at budgets of the grid."""
        best: Candidate | None = None
        if not self.from_intervals or not self._starts:
            return None
        for grid_bytes in self.space.grid_below(budget_bytes):
            # It grows as the budget falls: no lower budget of the grid can beat it either.
            if self.space.hosted_class_bound_seconds(grid_bytes) >= beat_seconds:
                break
            if grid_bytes not in self._solved:
                self._solved[grid_bytes] = self._solve(grid_bytes)
            found = self._solved[grid_bytes]
            if found is not None and found.seconds < beat_seconds:
                best, beat_seconds = found, found.seconds
        return best

    def search_under(self, budget_bytes: int, saved_bytes: int) -> None:
        """Have plans evaluated within the budget that save no more on the device than so many bytes."""
        for number, start in enumerate(self._starts):
            hosting = self._from(number)
            on_host = hosting.longest_idle(start.saved_bytes - saved_bytes)
            plan = hosting.fitted(budget_bytes, inf, on_host)
            if plan is not None and plan.offloaded:
                self.space.evaluator.evaluate(plan, OFFLOAD)

    @cached_property
    def _solved(self) -> dict[int, Candidate | None]:
        return {}

    def _solve(self, budget_bytes: int) -> Candidate | None:
        simulator, intervals = self.space.evaluator.simulator, self.space.hosted_intervals
        assert simulator.link is not None
        assert intervals is not None
        best: Candidate | None = None
        for start, on_host in intervals(budget_bytes):
            plan = Hosting(simulator, start, simulator.link).fitted(budget_bytes, inf, on_host)
            if plan is not None:
                found = self.space.evaluator.evaluate(plan, OFFLOAD)
                best = faster(best, found) if found.peak_bytes <= budget_bytes else best
        return best

    def lowest(self) -> Candidate | None:
        plans = (self._from(number).lowest() for number in range(len(self._starts)))
        found = [self.space.evaluator.evaluate(plan, OFFLOAD) for plan in plans if plan.offloaded]
        return min(found, key=by_peak, default=None)

    def why_not(self, chosen: Candidate) -> str:
        """Why this candidate offloads nothing, in words; empty where it does, or where nobody asked."""
        simulator = self.space.evaluator.simulator
        if chosen.plan.offloaded or not self.space.problem.host_bytes:
            return ""
        if simulator.link is None:
            return "the device profile has no link to the host"
        if chosen.seconds <= self.space.fastest_cut.seconds:
            return "the fastest plan fits without it"
        return Hosting(simulator, self.space.fastest_cut.plan, simulator.link).why_not()

    def _from(self, number: int) -> Hosting:
        if number not in self._hosting:
            simulator = self.space.evaluator.simulator
            assert simulator.link is not None
            self._hosting[number] = Hosting(simulator, self._starts[number].plan, simulator.link)
        return self._hosting[number]
