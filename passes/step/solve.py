"""Solve the step problem: least seconds of the step within the budget, with a bound and a gap.

Where the search (`program.py`) ends within its limit of work, and `proven` says so, the answer is optimal for the
tables, so a larger budget is never slower.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from autockpt.passes.planners import Gap
from autockpt.passes.problem import Budget, Outcome
from autockpt.passes.step.bound import bound_seconds
from autockpt.passes.step.options import PlanOption
from autockpt.passes.step.problem import CallPeaks, StepProblem
from autockpt.passes.step.program import search

Choices = tuple[int, ...]


@dataclass(frozen=True)
class StepPlan:
    """One option for each call of the step."""

    problem: StepProblem
    outcome: Outcome
    choices: Choices
    """Of each call: the number of its option in the table of its graph."""
    table_bound_seconds: float
    """No choice from the tables within the budget takes fewer seconds; those of this plan where it is proven optimal.
    Where no choice fits: within the peak of this plan."""
    proven: bool
    """The search ended within its limit of work."""

    @property
    def budget_bytes(self) -> int:
        return self.problem.budget_bytes

    @property
    def options(self) -> list[PlanOption]:
        """Of each call."""
        return self.problem.chosen(self.choices)

    @cached_property
    def seconds(self) -> float:
        """Of all calls."""
        return self.problem.seconds(self.choices)

    @cached_property
    def call_peaks(self) -> tuple[CallPeaks, ...]:
        return self.problem.peaks(self.choices)

    @cached_property
    def peak_bytes(self) -> int:
        """Of the step."""
        return self.problem.peak_bytes(self.choices)

    @cached_property
    def host_bytes(self) -> int:
        """That wait on the host at once."""
        return self.problem.most_on_host(self.choices)

    @cached_property
    def gap(self) -> Gap:
        """Distance to the fastest step within the budget; the class is that of choices from the tables."""
        fastest, seconds = self.problem.seconds(fastest_choices(self.problem)), self.seconds
        over = self.outcome is Outcome.OVER_BUDGET
        bound = seconds if over else min(bound_seconds(self.problem), seconds)
        return Gap(
            overhead_seconds=max(seconds - fastest, 0.0),
            bound_seconds=max(bound - fastest, 0.0),
            class_bound_seconds=max(min(self.table_bound_seconds, seconds) - fastest, 0.0),
            step_seconds=seconds,
        )

    def variants(self, graph: str) -> dict[int, tuple[int, ...]]:
        """The options of one graph that are used, each with the positions of the calls that use it."""
        found: dict[int, list[int]] = {}
        for number, (call, choice) in enumerate(zip(self.problem.calls, self.choices, strict=True)):
            if call.graph == graph:
                found.setdefault(choice, []).append(number)
        return {choice: tuple(found[choice]) for choice in sorted(found)}


@dataclass(frozen=True, slots=True)
class StepRange:
    """Peaks of a step between which a budget changes anything."""

    min_peak_bytes: int
    fastest_bytes: int
    """Of the fastest step."""

    def at(self, fraction: float) -> int:
        """0.0 is the minimum peak, 1.0 the peak of the fastest step."""
        return self.min_peak_bytes + int((self.fastest_bytes - self.min_peak_bytes) * fraction)


def solve(problem: StepProblem) -> StepPlan:
    """The fastest step within the budget, or the one with the lowest peak; the outcome says which."""
    fastest = fastest_choices(problem)
    if problem.fits(fastest):
        return StepPlan(problem, Outcome.FASTEST, fastest, problem.seconds(fastest), proven=True)
    found = _least_seconds(problem)
    if found is not None:
        return found
    lowest = solve_min_peak(problem)
    fits = problem.fits(lowest.choices)
    outcome = Outcome.FITS if fits else Outcome.OVER_BUDGET
    return StepPlan(problem, outcome, lowest.choices, lowest.table_bound_seconds, lowest.proven)


def solve_min_peak(problem: StepProblem) -> StepPlan:
    """The step with the lowest peak; of those, the fastest. Its budget is that peak."""
    found = search(problem, least_peak=True)
    choices = found.choices or _leanest_choices(problem)
    tight = problem.at(problem.peak_bytes(choices))
    faster = _least_seconds(tight)
    if faster is None:
        return StepPlan(tight, Outcome.FITS, choices, problem.seconds(choices), proven=False)
    return replace(faster, proven=found.proven and faster.proven)


def step_range(problem: StepProblem) -> StepRange:
    """From the minimum peak of the step to the peak of its fastest plans; the budget of the problem plays no part."""
    return StepRange(solve_min_peak(problem).peak_bytes, problem.peak_bytes(fastest_choices(problem)))


def resolve_budget(budget: Budget, problem: StepProblem) -> int:
    """A budget for the whole step as bytes. `free_bytes` come on top of the outside bytes of the first forward."""
    if budget.total_bytes is not None:
        return budget.total_bytes
    if budget.free_bytes is not None:
        return budget.free_bytes + (problem.calls[0].forward_outside_bytes if problem.calls else 0)
    assert budget.fraction is not None
    if budget.fraction == 1.0:
        return problem.peak_bytes(fastest_choices(problem))
    return step_range(problem).at(budget.fraction)


def fastest_choices(problem: StepProblem) -> Choices:
    """Every graph's fastest option, which comes first in its table."""
    return (0,) * len(problem.calls)


def _leanest_choices(problem: StepProblem) -> Choices:
    """For each graph one option for all calls, which holds and needs few bytes: where a search finds nothing. Of those
    with least on the host, since nothing says how many calls are in flight."""

    def cost(option: PlanOption) -> tuple[int, int]:
        return option.host_bytes, option.held_bytes + option.pass_bytes

    tables = problem.tables.items()
    least = {graph: min(range(len(table.options)), key=lambda n: cost(table.options[n])) for graph, table in tables}
    return tuple(least[call.graph] for call in problem.calls)


def _least_seconds(problem: StepProblem) -> StepPlan | None:
    """None where no choice fits, or none was found."""
    found = search(problem)
    if found.choices is None:
        return None
    seconds = problem.seconds(found.choices)
    bound = seconds if found.proven else min(found.bound, seconds)
    return StepPlan(problem, Outcome.FITS, found.choices, bound, found.proven)
