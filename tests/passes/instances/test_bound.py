"""No plan beats the bound: brute force knows the fastest of all plans."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import lowest_peak, optima, telling_budgets
from random_tasks import sketch

from autockpt.passes.instances.astar import exact
from autockpt.passes.instances.bound import every_plan_bound
from autockpt.passes.instances.task import Task, extra_seconds, peak_bytes


def test_no_plan_of_a_random_graph_beats_the_bound(seeds: range) -> None:
    for seed in seeds:
        task = sketch(seed).task
        budgets = telling_budgets(task)
        for budget, best in zip(budgets, optima(task, budgets), strict=True):
            assert every_plan_bound(task, budget) <= best, f"seed {seed}, budget {budget}"


@pytest.mark.parametrize("columns", [1, 40, 100])
def test_no_plan_beats_the_bound_of_few_stages(columns: int, seeds: range) -> None:
    for seed in seeds:
        task = sketch(seed, most_values=9).task
        budgets = telling_budgets(task)
        for budget, best in zip(budgets, optima(task, budgets), strict=True):
            assert every_plan_bound(task, budget, most_columns=columns, whole_columns=0) <= best, f"seed {seed}"


def test_infinity_is_claimed_only_where_nothing_fits(seeds: range) -> None:
    for seed in seeds:
        task = sketch(seed, most_values=9).task
        lowest = lowest_peak(task)
        assert every_plan_bound(task, lowest) < inf, f"seed {seed}"
        assert every_plan_bound(task, 0) == inf


def test_the_bound_is_near_the_optimum() -> None:
    found, best = 0.0, 0.0
    for seed in range(20):
        task = sketch(seed).task
        budgets = telling_budgets(task)
        best += sum(optima(task, budgets))
        found += sum(every_plan_bound(task, budget) for budget in budgets)
    assert found > 0.97 * best


def test_a_value_that_cannot_be_kept_is_paid_for() -> None:
    # The first gradient lives beside f0, f1 and the loss, 14 bytes; with less, the cheaper of f0 and f1 runs again.
    reads = [(), (), (0, 1), (1, 2), (0, 3)]
    task = Task.of([2, 3, 1, 1, 1], [5, 5, 3, 1, 1], reads, turn=3, must_save=[2], stays=[2, 4])
    assert every_plan_bound(task, 14) == 0.0
    assert every_plan_bound(task, 13) == pytest.approx(2.0, rel=1e-5)
    assert every_plan_bound(task, 12) == inf


def test_a_budget_that_everything_fits_has_no_bound(seeds: range) -> None:
    for seed in seeds:
        task = sketch(seed).task
        assert every_plan_bound(task, peak_bytes(task, task.save_everything)) == 0.0


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.sampled_from([10, 10**4, 10**9]), part=st.integers(0, 4))
def test_large_bytes_do_not_break_the_bound(seed: int, factor: int, part: int) -> None:
    task = sketch(seed, most_values=9).task
    budget = telling_budgets(task)[part]
    again = exact(task, budget)
    assert again is not None
    large = replace(task, nbytes=task.nbytes * factor, scratch=task.scratch * factor)
    assert every_plan_bound(large, budget * factor) <= extra_seconds(task, again)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.sampled_from([1e-9, 1e-3, 1e6]), part=st.integers(0, 4))
def test_small_seconds_do_not_break_the_bound(seed: int, factor: float, part: int) -> None:
    task = sketch(seed, most_values=9).task
    budget = telling_budgets(task)[part]
    again = exact(task, budget)
    assert again is not None
    assert every_plan_bound(replace(task, costs=task.costs * factor), budget) <= factor * extra_seconds(task, again)
