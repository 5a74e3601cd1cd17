"""The fastest plan that fits, for every budget."""

from __future__ import annotations

from itertools import pairwise

from graphs import chain, problem, random_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from autockpt.passes.forecast.simulator import forecast
from autockpt.passes.planners.frontier import Frontier


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_larger_budget_never_gives_a_slower_plan(seed: int) -> None:
    frontier = Frontier(random_problem(seed, max_values=10))
    low, high = frontier.peak_bytes(frontier.lowest), frontier.peak_bytes(frontier.fastest)
    budgets = [low + (high - low) * step // 8 for step in range(9)]
    found = [frontier.within(budget) for budget in budgets]
    assert all(a is not None and b is not None and a.seconds >= b.seconds for a, b in pairwise(found))
    assert all(frontier.peak_bytes(f) <= b for f, b in zip(found, budgets, strict=True) if f is not None)


def test_below_the_floor_there_is_nothing() -> None:
    frontier = Frontier(problem(chain(6)))
    assert frontier.within(frontier.peak_bytes(frontier.lowest) - 1) is None


def test_a_chain_of_equal_layers_has_plans_between_all_and_nothing() -> None:
    """One price would keep every layer or none; neither is the lowest peak."""
    frontier = Frontier(problem(chain(16)))
    lowest = frontier.lowest
    assert 0 < len(lowest.plan.saved) < 16
    assert frontier.peak_bytes(lowest) < 0.75 * frontier.peak_bytes(frontier.fastest)


def test_the_peak_of_a_candidate_is_the_forecast_of_its_plan() -> None:
    frontier = Frontier(problem(chain(8)))
    for candidate in (*frontier.hull.cuts, frontier.lowest):
        assert frontier.peak_bytes(candidate) == forecast(frontier.problem, candidate.plan).peak_bytes
