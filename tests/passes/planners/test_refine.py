"""The closed loop, with lowerings that say what the test wants them to say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from graphs import UNIT, chain, problem
from hypothesis import given
from hypothesis import strategies as st

from autockpt.passes.planners.decide import Decision
from autockpt.passes.planners.frontier import Frontier
from autockpt.passes.planners.refine import ROUNDS, Unseen, settle
from autockpt.passes.problem.plan import Budget, Outcome, Plan

FRONTIER = Frontier(problem(chain(9)))
LOW, HIGH = (FRONTIER.peak_bytes(end) for end in (FRONTIER.lowest, FRONTIER.fastest))
UNSEEN = 64 * 2**10
"""What a look adds: the graph's own bytes are few beside it, so budgets here have it added too."""


def decided(budget_bytes: int) -> Decision:
    found = FRONTIER.within(budget_bytes - UNSEEN)
    chosen = found or FRONTIER.lowest
    return Decision(
        problem=FRONTIER.problem,
        plan=chosen.plan,
        outcome=Outcome.FITS if found else Outcome.OVER_BUDGET,
        forecast=FRONTIER.simulator.forecast(chosen.plan),
        budget_bytes=budget_bytes,
        planning_seconds=0.0,
        frontier=FRONTIER,
        candidate=chosen,
    )


def lowering(error: Callable[[int], int]) -> tuple[Callable[[Plan], int], list[Plan]]:
    """A lowering that is off by `error` of the forecast, and the plans it was asked for."""
    asked: list[Plan] = []

    def look(plan: Plan) -> int:
        asked.append(plan)
        return FRONTIER.simulator.peak_bytes(plan) + error(FRONTIER.simulator.peak_bytes(plan))

    return look, asked


def total(budget_bytes: int) -> Budget:
    return Budget(total_bytes=budget_bytes)


def test_a_plan_that_was_lowered_as_forecast_is_looked_at_once() -> None:
    budget = LOW + (HIGH - LOW) // 2 + UNSEEN + UNIT
    look, asked = lowering(lambda _: 0)
    settled = settle(decided(budget), total(budget), look)
    assert len(asked) == 1
    assert settled.plan == decided(budget).plan
    assert settled.compiled_bytes == settled.forecast.peak_bytes


def test_a_plan_that_was_lowered_too_high_is_replaced_by_one_that_fits() -> None:
    budget = HIGH + UNSEEN + UNIT // 2
    look, asked = lowering(lambda _: 2 * UNIT)
    settled = settle(decided(budget), total(budget), look)
    assert len(asked) > 1
    assert settled.compiled_bytes is not None
    assert settled.compiled_bytes + UNSEEN <= budget
    assert settled.outcome is not Outcome.OVER_BUDGET


def test_a_budget_left_lying_is_used() -> None:
    """Forecasts that are far too high would waste a third of it."""
    frontier, budget = FRONTIER, HIGH + UNSEEN
    start = decided(budget)
    low = start.instead(frontier.lowest, budget, ())
    look, _ = lowering(lambda forecast: -(forecast + UNSEEN) // 2)
    settled = settle(low, total(budget), look)
    assert settled.candidate.seconds < frontier.lowest.seconds


def test_where_nothing_fits_the_lowest_that_was_seen_is_over_budget() -> None:
    budget = LOW + UNSEEN + UNIT
    look, _ = lowering(lambda _: 50 * UNIT)
    settled = settle(decided(budget), total(budget), look)
    assert settled.outcome is Outcome.OVER_BUDGET
    assert settled.compiled_bytes == min(look.compiled_bytes for look in settled.looks)


def test_the_lowest_plan_is_looked_at_where_nothing_fitted_before() -> None:
    """Every plan but the lowest is lowered far too high."""
    budget = HIGH + UNSEEN
    lowest = FRONTIER.lowest.plan
    asked: list[Plan] = []

    def look(plan: Plan) -> int:
        asked.append(plan)
        return LOW if plan == lowest else 2 * HIGH

    settled = settle(decided(budget), total(budget), look)
    assert lowest in asked
    assert settled.plan == lowest
    assert settled.outcome is not Outcome.OVER_BUDGET


def test_a_first_look_that_fails_says_why() -> None:
    def look(_: Plan) -> int:
        raise ValueError("no lowering for this")

    with pytest.raises(Unseen) as caught:
        settle(decided(HIGH + UNSEEN), total(HIGH + UNSEEN), look)
    assert str(caught.value.__cause__) == "no lowering for this"


def test_a_later_look_that_fails_leaves_what_was_seen() -> None:
    budget = HIGH + UNSEEN + UNIT // 2
    answers = iter([HIGH + 2 * UNIT])
    settled = settle(decided(budget), total(budget), lambda _: next(answers))
    assert len(settled.looks) == 1
    assert settled.outcome is Outcome.OVER_BUDGET


def test_the_lowest_position_is_what_the_lowest_plan_takes() -> None:
    budget = LOW + UNSEEN
    look, _ = lowering(lambda _: 3 * UNIT)
    settled = settle(decided(budget), Budget(fraction=0.0), look)
    assert settled.outcome is not Outcome.OVER_BUDGET
    assert settled.budget_bytes == settled.looks[0].needed_bytes


def test_the_highest_position_is_what_the_fastest_plan_takes() -> None:
    budget = HIGH + UNSEEN
    look, asked = lowering(lambda _: 3 * UNIT)
    settled = settle(decided(budget), Budget(fraction=1.0), look)
    assert settled.candidate is FRONTIER.fastest
    assert len(asked) == 1


@given(errors=st.lists(st.integers(-3, 3), min_size=ROUNDS, max_size=ROUNDS), position=st.floats(0, 1))
def test_the_fastest_plan_that_was_seen_to_fit_is_taken(errors: list[int], position: float) -> None:
    budget = int(LOW + (HIGH - LOW) * position) + UNSEEN + UNIT
    left = iter(errors)
    look, asked = lowering(lambda _: next(left) * UNIT)
    settled = settle(decided(budget), total(budget), look)
    fitting = [seen for seen in settled.looks if seen.needed_bytes <= budget]
    assert len(asked) == len(settled.looks) <= ROUNDS
    assert (settled.outcome is not Outcome.OVER_BUDGET) == bool(fitting)
    if fitting:
        assert settled.candidate.seconds == min(seen.candidate.seconds for seen in fitting)
