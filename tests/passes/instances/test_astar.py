"""The exact planner against brute force, and what must hold of any optimum."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import best_of_plans, min_peak, optima, sample_budgets
from random_instances import sketch

from autockpt.passes.instances.astar import TooLarge, solve_exact
from autockpt.passes.instances.instance import Instance, extra_seconds, peak_bytes


def seconds(instance: Instance, budget: int) -> float:
    recomputed = solve_exact(instance, budget)
    if recomputed is None:
        return inf
    assert peak_bytes(instance, recomputed) <= budget
    return extra_seconds(instance, recomputed)


def test_exact_is_the_optimum_of_every_random_graph(seeds: range) -> None:
    for seed in seeds:
        instance = sketch(seed).instance
        budgets = sample_budgets(instance)
        assert [seconds(instance, budget) for budget in budgets] == optima(instance, budgets), f"seed {seed}"


def test_below_the_smallest_peak_there_is_no_plan(seeds: range) -> None:
    for seed in seeds:
        instance = sketch(seed, max_values=9).instance
        smallest = min_peak(instance)
        assert solve_exact(instance, smallest - 1) is None, f"seed {seed}"
        assert solve_exact(instance, smallest) is not None, f"seed {seed}"


@pytest.mark.parametrize("seed", range(24))
def test_brute_force_agrees_with_trying_every_plan_of_a_tiny_instance(seed: int) -> None:
    instance = sketch(seed, max_values=4).instance
    for budget in sample_budgets(instance)[::2]:
        assert optima(instance, [budget]) == [best_of_plans(instance, budget, max_recomputations=3)]


def test_a_value_is_recomputed_where_holding_it_does_not_fit() -> None:
    # f0 is read first and last; g1 is large while it is live.
    instance = Instance.of(
        [1, 1, 1, 1, 1], [4, 4, 1, 7, 1], [(), (0,), (0, 1), (1, 2), (0, 3)], boundary=2, outputs=[4]
    )
    assert solve_exact(instance, 16) == ((), (), ())
    assert solve_exact(instance, 12) == ((), (), (0,))
    assert solve_exact(instance, 11) is None


def test_a_search_that_grows_too_large_says_so() -> None:
    instance = sketch(6).instance
    with pytest.raises(TooLarge):
        solve_exact(instance, min_peak(instance), max_states=3)


def test_within_a_large_budget_nothing_is_recomputed(seeds: range) -> None:
    for seed in seeds:
        instance = sketch(seed).instance
        assert solve_exact(instance, peak_bytes(instance, instance.save_everything)) == instance.save_everything


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.integers(2, 10**6), part=st.integers(0, 4))
def test_scaling_all_bytes_changes_nothing(seed: int, factor: int, part: int) -> None:
    instance = sketch(seed, max_values=9).instance
    budget = sample_budgets(instance)[part]
    scaled = replace(instance, nbytes=instance.nbytes * factor, workspace=instance.workspace * factor)
    assert solve_exact(scaled, budget * factor) == solve_exact(instance, budget)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), budget=st.integers(0, 400), more=st.integers(1, 100))
def test_a_larger_budget_is_never_slower(seed: int, budget: int, more: int) -> None:
    instance = sketch(seed, max_values=9).instance
    assert seconds(instance, budget + more) <= seconds(instance, budget)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), value=st.integers(0, 8), part=st.integers(0, 4))
def test_a_must_save_value_is_never_recomputed(seed: int, value: int, part: int) -> None:
    instance = sketch(seed, max_values=9).instance
    budget = sample_budgets(instance)[part]
    must_save = instance.must_save.copy()
    must_save[value % instance.boundary] = True
    recomputed = solve_exact(replace(instance, must_save=must_save), budget)
    if recomputed is None:
        return
    assert not any(must_save[operation] for operations in recomputed for operation in operations)
    assert seconds(instance, budget) <= extra_seconds(instance, recomputed)
