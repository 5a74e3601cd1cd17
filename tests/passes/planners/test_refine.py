"""Refinement by dry runs, with dry runs that say what the test needs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from graphs import UNIT, chain, problem
from hypothesis import given, settings
from hypothesis import strategies as st

from autockpt.passes.forecast.candidate import Candidate
from autockpt.passes.planners.decide import CompiledPeak, Decision
from autockpt.passes.planners.frontier import Frontier
from autockpt.passes.planners.refine import MAX_DRY_RUNS, DryRunFailed, refine
from autockpt.passes.problem.plan import Budget, Outcome

FRONTIER = Frontier(problem(chain(9)))
LOW, HIGH = FRONTIER.lowest.peak_bytes, FRONTIER.fastest.peak_bytes
UNCOUNTED = 64 * 2**10
"""What a dry run leaves out: the graph's own bytes are few beside it, so budgets here have it added too."""


def decided(budget_bytes: int) -> Decision:
    found = FRONTIER.within(budget_bytes - UNCOUNTED)
    chosen = found or FRONTIER.lowest
    return Decision(
        problem=FRONTIER.problem,
        outcome=Outcome.FITS if found else Outcome.OVER_BUDGET,
        budget_bytes=budget_bytes,
        planning_seconds=0.0,
        frontier=FRONTIER,
        candidate=chosen,
    )


def dry_runs(error: Callable[[int], int]) -> tuple[Callable[[Candidate], CompiledPeak], list[Candidate]]:
    """Dry runs that are off by `error` of the forecast, and the candidates they were made of."""
    done: list[Candidate] = []

    def dry_run(candidate: Candidate) -> CompiledPeak:
        done.append(candidate)
        return CompiledPeak(candidate, candidate.peak_bytes + error(candidate.peak_bytes))

    return dry_run, done


def total(budget_bytes: int) -> Budget:
    return Budget(total_bytes=budget_bytes)


def test_a_plan_that_compiles_as_forecast_is_run_dry_once() -> None:
    budget = LOW + (HIGH - LOW) // 2 + UNCOUNTED + UNIT
    dry_run, done = dry_runs(lambda _: 0)
    refined = refine(decided(budget), total(budget), dry_run)
    assert len(done) == 1
    assert refined.plan == decided(budget).plan
    assert refined.compiled_bytes == refined.forecast.peak_bytes


def test_a_plan_that_compiles_too_high_is_replaced_by_one_that_fits() -> None:
    budget = HIGH + UNCOUNTED + UNIT // 2
    dry_run, done = dry_runs(lambda _: 2 * UNIT)
    refined = refine(decided(budget), total(budget), dry_run)
    assert len(done) > 1
    assert refined.compiled_bytes is not None
    assert refined.compiled_bytes + UNCOUNTED <= budget
    assert refined.outcome is not Outcome.OVER_BUDGET


def test_a_budget_left_unused_is_used() -> None:
    """Forecasts that are far too high would waste a third of it."""
    frontier, budget = FRONTIER, HIGH + UNCOUNTED
    start = decided(budget)
    low = start.with_candidate(frontier.lowest, budget, ())
    dry_run, _ = dry_runs(lambda forecast: -(forecast + UNCOUNTED) // 2)
    refined = refine(low, total(budget), dry_run)
    assert refined.candidate.seconds < frontier.lowest.seconds


def test_where_nothing_fits_the_lowest_compiled_peak_is_over_budget() -> None:
    budget = LOW + UNCOUNTED + UNIT
    dry_run, _ = dry_runs(lambda _: 50 * UNIT)
    refined = refine(decided(budget), total(budget), dry_run)
    assert refined.outcome is Outcome.OVER_BUDGET
    assert refined.compiled_bytes == min(run.compiled_bytes for run in refined.dry_runs)


def test_the_lowest_plan_is_run_dry_where_nothing_fitted_before() -> None:
    """Every plan but the lowest compiles far too high."""
    budget = HIGH + UNCOUNTED
    lowest = FRONTIER.lowest
    done: list[Candidate] = []

    def dry_run(candidate: Candidate) -> CompiledPeak:
        done.append(candidate)
        return CompiledPeak(candidate, LOW if candidate is lowest else 2 * HIGH)

    refined = refine(decided(budget), total(budget), dry_run)
    assert lowest in done
    assert refined.plan == lowest.plan
    assert refined.outcome is not Outcome.OVER_BUDGET


def test_a_first_dry_run_that_fails_says_why() -> None:
    def dry_run(_: Candidate) -> CompiledPeak:
        raise ValueError("no lowering for this")

    with pytest.raises(DryRunFailed) as caught:
        refine(decided(HIGH + UNCOUNTED), total(HIGH + UNCOUNTED), dry_run)
    assert str(caught.value.__cause__) == "no lowering for this"


def test_a_later_dry_run_that_fails_leaves_the_earlier_ones() -> None:
    budget = HIGH + UNCOUNTED + UNIT // 2
    answers = iter([HIGH + 2 * UNIT])
    refined = refine(decided(budget), total(budget), lambda candidate: CompiledPeak(candidate, next(answers)))
    assert len(refined.dry_runs) == 1
    assert refined.outcome is Outcome.OVER_BUDGET


def test_fraction_0_is_what_the_lowest_plan_needs() -> None:
    budget = LOW + UNCOUNTED
    dry_run, _ = dry_runs(lambda _: 3 * UNIT)
    refined = refine(decided(budget), Budget(fraction=0.0), dry_run)
    assert refined.outcome is not Outcome.OVER_BUDGET
    assert refined.budget_bytes == refined.dry_runs[0].needed_bytes


def test_fraction_1_is_what_the_fastest_plan_needs() -> None:
    budget = HIGH + UNCOUNTED
    dry_run, done = dry_runs(lambda _: 3 * UNIT)
    refined = refine(decided(budget), Budget(fraction=1.0), dry_run)
    assert refined.candidate is FRONTIER.fastest
    assert len(done) == 1


@settings(deadline=None)
@given(errors=st.lists(st.integers(-3, 3), min_size=MAX_DRY_RUNS, max_size=MAX_DRY_RUNS), position=st.floats(0, 1))
def test_the_fastest_plan_whose_dry_run_fits_is_taken(errors: list[int], position: float) -> None:
    budget = int(LOW + (HIGH - LOW) * position) + UNCOUNTED + UNIT
    left = iter(errors)
    dry_run, done = dry_runs(lambda _: next(left) * UNIT)
    refined = refine(decided(budget), total(budget), dry_run)
    fitting = [run for run in refined.dry_runs if run.needed_bytes <= budget]
    assert len(done) == len(refined.dry_runs) <= MAX_DRY_RUNS
    assert (refined.outcome is not Outcome.OVER_BUDGET) == bool(fitting)
    if fitting:
        assert refined.candidate.seconds == min(run.candidate.seconds for run in fitting)
