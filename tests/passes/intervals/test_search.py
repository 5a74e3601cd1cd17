"""Plans that the interval program finds for a budget, on random graphs."""

from __future__ import annotations

import pytest
from graphs import random_problem

from autockpt.passes.forecast.candidate import Evaluator
from autockpt.passes.intervals.search import IntervalSearch
from autockpt.passes.problem.schedule import savable_set


def search(seed: int, rounds: int = 5, limit_seconds: float = 10.0) -> tuple[IntervalSearch, Evaluator, int]:
    """With the peak of saving everything."""
    evaluator = Evaluator(random_problem(seed))
    everything = savable_set(evaluator.problem, evaluator.problem.graph.backward_reads)
    fastest = evaluator.saving(everything, "all")
    return IntervalSearch(evaluator, fastest.plan, rounds, limit_seconds), evaluator, fastest.peak_bytes


@pytest.mark.parametrize("rounds", [3, 5])
def test_plans_fit_their_budget_and_none_recomputes_less_than_the_bound(seeds: range, rounds: int) -> None:
    found = 0
    for seed in seeds:
        solve, _, peak = search(seed, rounds)
        for budget in range(solve.least_bytes, peak, 2000):
            candidate = solve(budget)
            if candidate is None:
                continue
            found += 1
            assert candidate.peak_bytes <= budget, f"seed {seed}, budget {budget}"
            assert candidate.recompute_seconds >= solve.bound_seconds(budget) - 1e-6, f"seed {seed}, budget {budget}"
    assert found


def test_no_plan_of_the_class_has_a_peak_below_the_least(seeds: range) -> None:
    for seed in seeds:
        solve, evaluator, _ = search(seed)
        nothing = evaluator.saving(savable_set(evaluator.problem, frozenset()), "none")
        assert solve.least_bytes <= nothing.peak_bytes
        assert solve(solve.least_bytes - 1) is None


def test_without_time_nothing_is_found_and_the_search_says_so() -> None:
    solve, _, peak = search(1, limit_seconds=0.0)
    assert solve(peak - 1) is None
    assert solve.timed_out
