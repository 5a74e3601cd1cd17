"""The exact planner against brute force, and what must hold of any optimum."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import best_of_plans, lowest_peak, optima, telling_budgets
from random_instances import sketch

from autockpt.passes.instances.astar import TooLarge, solve_exact
from autockpt.passes.instances.instance import Instance, extra_seconds, peak_bytes


def seconds(instance: Instance, budget: int) -> float:
    again = solve_exact(instance, budget)
    if again is None:
        return inf
    assert peak_bytes(instance, again) <= budget
    return extra_seconds(instance, again)


def test_exact_is_the_optimum_of_every_random_graph(seeds: range) -> None:
    for seed in seeds:
        instance = sketch(seed).instance
        budgets = telling_budgets(instance)
        assert [seconds(instance, budget) for budget in budgets] == optima(instance, budgets), f"seed {seed}"


def test_below_the_lowest_peak_there_is_no_plan(seeds: range) -> None:
    for seed in seeds:
        instance = sketch(seed, most_values=9).instance
        lowest = lowest_peak(instance)
        assert solve_exact(instance, lowest - 1) is None, f"seed {seed}"
        assert solve_exact(instance, lowest) is not None, f"seed {seed}"


@pytest.mark.parametrize("seed", range(24))
def test_brute_force_agrees_with_trying_every_plan_of_a_tiny_task(seed: int) -> None:
    instance = sketch(seed, most_values=4).instance
    for budget in telling_budgets(instance)[::2]:
        assert optima(instance, [budget]) == [best_of_plans(instance, budget, most_runs=3)]


def test_a_value_is_made_twice_where_holding_it_does_not_fit() -> None:
    # f0 is read first and last; g1 is large while it lives.
    instance = Instance.of([1, 1, 1, 1, 1], [4, 4, 1, 7, 1], [(), (0,), (0, 1), (1, 2), (0, 3)], boundary=2, stays=[4])
    assert solve_exact(instance, 16) == ((), (), ())
    assert solve_exact(instance, 12) == ((), (), (0,))
    assert solve_exact(instance, 11) is None


def test_a_search_that_grows_too_large_says_so() -> None:
    instance = sketch(6).instance
    with pytest.raises(TooLarge):
        solve_exact(instance, lowest_peak(instance), most_states=3)


def test_a_budget_that_everything_fits_needs_nothing_again(seeds: range) -> None:
    for seed in seeds:
        instance = sketch(seed).instance
        assert solve_exact(instance, peak_bytes(instance, instance.save_everything)) == instance.save_everything


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.integers(2, 10**6), part=st.integers(0, 4))
def test_scaling_all_bytes_changes_nothing(seed: int, factor: int, part: int) -> None:
    instance = sketch(seed, most_values=9).instance
    budget = telling_budgets(instance)[part]
    scaled = replace(instance, nbytes=instance.nbytes * factor, scratch=instance.scratch * factor)
    assert solve_exact(scaled, budget * factor) == solve_exact(instance, budget)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), budget=st.integers(0, 400), more=st.integers(1, 100))
def test_a_larger_budget_is_never_slower(seed: int, budget: int, more: int) -> None:
    instance = sketch(seed, most_values=9).instance
    assert seconds(instance, budget + more) <= seconds(instance, budget)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), value=st.integers(0, 8), part=st.integers(0, 4))
def test_a_pinned_value_never_runs_again(seed: int, value: int, part: int) -> None:
    instance = sketch(seed, most_values=9).instance
    budget = telling_budgets(instance)[part]
    must_save = instance.must_save.copy()
    must_save[value % instance.boundary] = True
    again = solve_exact(replace(instance, must_save=must_save), budget)
    if again is None:
        return
    assert not any(must_save[operation] for more in again for operation in more)
    assert seconds(instance, budget) <= extra_seconds(instance, again)
