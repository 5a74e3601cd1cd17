"""The exact planner against brute force, and what must hold of any optimum."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import best_of_plans, lowest_peak, optima, telling_budgets
from random_tasks import sketch

from autockpt.passes.instances.astar import TooLarge, exact
from autockpt.passes.instances.task import Task, extra_seconds, peak_bytes


def seconds(task: Task, budget: int) -> float:
    again = exact(task, budget)
    if again is None:
        return inf
    assert peak_bytes(task, again) <= budget
    return extra_seconds(task, again)


def test_exact_is_the_optimum_of_every_random_graph(seeds: range) -> None:
    for seed in seeds:
        task = sketch(seed).task
        budgets = telling_budgets(task)
        assert [seconds(task, budget) for budget in budgets] == optima(task, budgets), f"seed {seed}"


def test_below_the_lowest_peak_there_is_no_plan(seeds: range) -> None:
    for seed in seeds:
        task = sketch(seed, most_values=9).task
        lowest = lowest_peak(task)
        assert exact(task, lowest - 1) is None, f"seed {seed}"
        assert exact(task, lowest) is not None, f"seed {seed}"


@pytest.mark.parametrize("seed", range(24))
def test_brute_force_agrees_with_trying_every_plan_of_a_tiny_task(seed: int) -> None:
    task = sketch(seed, most_values=4).task
    for budget in telling_budgets(task)[::2]:
        assert optima(task, [budget]) == [best_of_plans(task, budget, most_runs=3)]


def test_a_value_is_made_twice_where_holding_it_does_not_fit() -> None:
    # f0 is read first and last; g1 is large while it lives.
    task = Task.of([1, 1, 1, 1, 1], [4, 4, 1, 7, 1], [(), (0,), (0, 1), (1, 2), (0, 3)], turn=2, stays=[4])
    assert exact(task, 16) == ((), (), ())
    assert exact(task, 12) == ((), (), (0,))
    assert exact(task, 11) is None


def test_a_search_that_grows_too_large_says_so() -> None:
    task = sketch(6).task
    with pytest.raises(TooLarge):
        exact(task, lowest_peak(task), most_states=3)


def test_a_budget_that_everything_fits_needs_nothing_again(seeds: range) -> None:
    for seed in seeds:
        task = sketch(seed).task
        assert exact(task, peak_bytes(task, task.save_everything)) == task.save_everything


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.integers(2, 10**6), part=st.integers(0, 4))
def test_scaling_all_bytes_changes_nothing(seed: int, factor: int, part: int) -> None:
    task = sketch(seed, most_values=9).task
    budget = telling_budgets(task)[part]
    scaled = replace(task, nbytes=task.nbytes * factor, scratch=task.scratch * factor)
    assert exact(scaled, budget * factor) == exact(task, budget)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), budget=st.integers(0, 400), more=st.integers(1, 100))
def test_a_larger_budget_is_never_slower(seed: int, budget: int, more: int) -> None:
    task = sketch(seed, most_values=9).task
    assert seconds(task, budget + more) <= seconds(task, budget)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), value=st.integers(0, 8), part=st.integers(0, 4))
def test_a_pinned_value_never_runs_again(seed: int, value: int, part: int) -> None:
    task = sketch(seed, most_values=9).task
    budget = telling_budgets(task)[part]
    must_save = task.must_save.copy()
    must_save[value % task.turn] = True
    again = exact(replace(task, must_save=must_save), budget)
    if again is None:
        return
    assert not any(must_save[operation] for more in again for operation in more)
    assert seconds(task, budget) <= extra_seconds(task, again)
