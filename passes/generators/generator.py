"""Generators: each searches one family of plans of a problem. The frontier takes the fastest of what they find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from autockpt.passes.forecast import Candidate
from autockpt.passes.generators.space import CUT, SearchSpace
from autockpt.passes.problem import plans_saving


class Generator(Protocol):
    """One family of plans. All three methods depend on the problem alone, never on what was asked before."""

    def fastest(self) -> Candidate | None:
        """The fastest plan of the family without a budget; None where that is not worth a search."""

    def within(self, budget_bytes: int, beat_seconds: float) -> Candidate | None:
        """The fastest plan found whose peak fits, if its step is faster than `beat_seconds`."""

    def lowest(self) -> Candidate | None:
        """The plan with the lowest peak that was found; None where others do not reach lower through this family."""


GeneratorFactory = Callable[[SearchSpace], Generator]


@dataclass(frozen=True)
class SaveEverything:
    """Saves whatever the backward reads, in the faster of the orders that the backward may run in."""

    space: SearchSpace

    @cached_property
    def _candidate(self) -> Candidate:
        problem = self.space.problem
        plans = plans_saving(problem, problem.graph.backward_reads)
        found = [self.space.evaluator.evaluate(plan, "save everything") for plan in plans]
        return min(found, key=lambda candidate: candidate.seconds)

    def fastest(self) -> Candidate:
        return self._candidate

    def within(self, budget_bytes: int, beat_seconds: float) -> Candidate | None:
        found = self._candidate
        return found if found.peak_bytes <= budget_bytes and found.seconds < beat_seconds else None

    def lowest(self) -> Candidate:
        return self._candidate


@dataclass(frozen=True)
class Cuts:
    """Minimum cuts at every price of a byte: what is not saved is recomputed once, just before its first use."""

    space: SearchSpace

    def fastest(self) -> Candidate:
        return self.space.fastest_cut

    def within(self, budget_bytes: int, beat_seconds: float) -> Candidate | None:
        best: Candidate | None = None
        for cut in self.space.hull.cuts:
            if self.space.step_seconds(cut.seconds) >= beat_seconds:
                break
            if cut.saved_bytes > budget_bytes - self.space.static_bytes:
                continue
            found = self.space.evaluator.saving(cut.saved, CUT)
            if found.peak_bytes <= budget_bytes and found.seconds < beat_seconds:
                best, beat_seconds = found, found.seconds
        return best

    def lowest(self) -> Candidate:
        return self.lowest_of(1)[0]

    def lowest_of(self, count: int) -> list[Candidate]:
        """So many cuts, those with the lowest peaks. No peak is below what is saved and what every plan holds."""
        found: list[Candidate] = []
        for cut in sorted(self.space.hull.cuts, key=lambda cut: cut.saved_bytes):
            if len(found) == count and self.space.static_bytes + cut.saved_bytes > found[-1].peak_bytes:
                break
            found = sorted([*found, self.space.evaluator.saving(cut.saved, CUT)], key=by_peak)[:count]
        return found


@dataclass(frozen=True)
class IntervalProgram:
    """The integer program over retention intervals, solved at a grid of budgets that depends on the graph alone."""

    space: SearchSpace

    def fastest(self) -> None:
        return None

    def within(self, budget_bytes: int, beat_seconds: float) -> Candidate | None:
        best: Candidate | None = None
        for grid_bytes in self.space.grid_below(budget_bytes):
            # Both bounds grow as the budget falls: no lower budget of the grid can beat it either.
            bound = max(self.space.bound_seconds(grid_bytes), self.space.class_bound_seconds(grid_bytes))
            if bound >= beat_seconds:
                break
            found = self.space.intervals(grid_bytes)
            if found is not None and found.seconds < beat_seconds:
                best, beat_seconds = found, found.seconds
        return best

    def lowest(self) -> None:
        return None


def by_peak(candidate: Candidate) -> tuple[int, float]:
    """Lowest peak first; the faster of equals."""
    return candidate.peak_bytes, candidate.seconds


def faster(one: Candidate | None, other: Candidate | None) -> Candidate | None:
    """The faster of two candidates, the first of equals."""
    if one is None or other is None:
        return one or other
    return other if other.seconds < one.seconds else one
