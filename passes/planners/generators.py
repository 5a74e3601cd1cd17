"""Generators: each searches one family of plans of a problem. The frontier takes the fastest of what they find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from autockpt.passes.forecast import Candidate
from autockpt.passes.graph import Kind, Role, Value
from autockpt.passes.instances import TooLarge, instance_of, peak_bytes, plan_of, solve_exact
from autockpt.passes.planners.space import CUT, SearchSpace
from autockpt.passes.problem import Lowering, Plan, Problem, plans_saving

_MAX_FORWARD_OPERATIONS = 14
"""Of graphs that are searched exactly."""
_MAX_VALUES = 60
"""Of the whole graph: larger ones are not converted at all."""
_MAX_STATES = 50_000


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
        return min(self.candidates(), key=by_peak)

    def candidates(self) -> list[Candidate]:
        """All cuts, evaluated."""
        return [self.space.evaluator.saving(cut.saved, CUT) for cut in self.space.hull.cuts]


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


@dataclass(frozen=True)
class Exact:
    """Every plan of a graph that is small and runs unfused, repeated recomputation included (A*)."""

    space: SearchSpace

    @cached_property
    def _search(self) -> ExactSearch | None:
        return ExactSearch.of(self.space.problem, self.space.evaluator.order)

    def fastest(self) -> None:
        return None

    def within(self, budget_bytes: int, beat_seconds: float) -> Candidate | None:
        plan = self._search.within(budget_bytes) if self._search else None
        found = self.space.evaluator.evaluate(plan, "exact") if plan else None
        return found if found and found.peak_bytes <= budget_bytes and found.seconds < beat_seconds else None

    def lowest(self) -> Candidate | None:
        plan = self._search.lowest(self.space.fastest_cut.peak_bytes) if self._search else None
        return self.space.evaluator.evaluate(plan, "exact") if plan else None


def by_peak(candidate: Candidate) -> tuple[int, float]:
    """Lowest peak first; the faster of equals."""
    return candidate.peak_bytes, candidate.seconds


def faster(one: Candidate | None, other: Candidate | None) -> Candidate | None:
    """The faster of two candidates, the first of equals."""
    if one is None or other is None:
        return one or other
    return other if other.seconds < one.seconds else one


class ExactSearch:
    """Every plan of a small graph that runs unfused, repeated recomputation included: then an instance counts as the
    forecast does. In practice `lower="eager"` on a few layers, and the oracle of tests."""

    def __init__(self, problem: Problem, order: Sequence[str]) -> None:
        self._problem = problem
        self._instance, self._naming = instance_of(problem, order)
        self._static_bytes = problem.static_bytes

    @staticmethod
    def of(problem: Problem, order: Sequence[str]) -> ExactSearch | None:
        """None where the graph is too large, fused, or counted otherwise by an instance."""
        values = problem.graph.values
        forward = [value for value in values if value.role is Role.FORWARD]
        large = len(values) > _MAX_VALUES or len(forward) > 2 * _MAX_FORWARD_OPERATIONS
        if large or problem.lowering is not Lowering.EAGER or problem.margin:
            return None
        if any(_is_overcounted(problem, value) for value in forward):
            return None
        search = ExactSearch(problem, order)
        return search if search._instance.boundary <= _MAX_FORWARD_OPERATIONS else None

    def within(self, budget_bytes: int) -> Plan | None:
        """The fastest plan that fits; None where there is none, or where the search has too many states."""
        try:
            runs = solve_exact(self._instance, budget_bytes - self._static_bytes, _MAX_STATES)
        except TooLarge:
            return None
        return plan_of(self._problem, self._naming, runs) if runs is not None else None

    def lowest(self, known_bytes: int) -> Plan | None:
        """The minimum peak by bisection below a peak that is reached; None where a search has too many states."""
        best: Plan | None = None
        low, high = self._static_bytes, known_bytes
        while low < high:
            middle = (low + high) // 2
            try:
                runs = solve_exact(self._instance, middle - self._static_bytes, _MAX_STATES)
            except TooLarge:
                return None
            if runs is None:
                low = middle + 1
            else:
                best = plan_of(self._problem, self._naming, runs)
                high = self._static_bytes + peak_bytes(self._instance, runs)
        return best


def _is_overcounted(problem: Problem, value: Value) -> bool:
    """Whether an instance counts more bytes than the replay: several results of one operation, savable masks."""
    backward_only = value.owns_bytes and value.name not in problem.graph.required_forward
    return value.kind is Kind.PART or (backward_only and value.name not in problem.unsavable)
