"""No plan beats the bound: brute force gives the fastest of all plans."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import min_peak, optima, sample_budgets
from random_instances import sketch

from autockpt.passes.instances.astar import solve_exact
from autockpt.passes.instances.bound import every_plan_bound
from autockpt.passes.instances.instance import Instance, extra_seconds, peak_bytes


def test_no_plan_of_a_random_graph_beats_the_bound(seeds: range) -> None:
    for seed in seeds:
        instance = sketch(seed).instance
        budgets = sample_budgets(instance)
        for budget, best in zip(budgets, optima(instance, budgets), strict=True):
            assert every_plan_bound(instance, budget) <= best, f"seed {seed}, budget {budget}"


@pytest.mark.parametrize("variables", [1, 40, 100])
def test_no_plan_beats_the_bound_of_few_stages(variables: int, seeds: range) -> None:
    for seed in seeds:
        instance = sketch(seed, max_values=9).instance
        budgets = sample_budgets(instance)
        for budget, best in zip(budgets, optima(instance, budgets), strict=True):
            assert every_plan_bound(instance, budget, linear_variables=variables, integer_variables=0) <= best, (
                f"seed {seed}"
            )


def test_infinity_is_claimed_only_where_nothing_fits(seeds: range) -> None:
    for seed in seeds:
        instance = sketch(seed, max_values=9).instance
        smallest = min_peak(instance)
        assert every_plan_bound(instance, smallest) < inf, f"seed {seed}"
        assert every_plan_bound(instance, 0) == inf


def test_the_bound_is_near_the_optimum() -> None:
    found, best = 0.0, 0.0
    for seed in range(20):
        instance = sketch(seed).instance
        budgets = sample_budgets(instance)
        best += sum(optima(instance, budgets))
        found += sum(every_plan_bound(instance, budget) for budget in budgets)
    assert found > 0.97 * best


def test_a_value_that_cannot_be_saved_is_paid_for() -> None:
    # The first gradient is live with f0, f1 and the loss, 14 bytes; with less, the cheaper of f0 and f1 is recomputed.
    reads = [(), (), (0, 1), (1, 2), (0, 3)]
    instance = Instance.of([2, 3, 1, 1, 1], [5, 5, 3, 1, 1], reads, boundary=3, must_save=[2], outputs=[2, 4])
    assert every_plan_bound(instance, 14) == 0.0
    assert every_plan_bound(instance, 13) == pytest.approx(2.0, rel=1e-5)
    assert every_plan_bound(instance, 12) == inf


def test_a_budget_that_everything_fits_has_no_bound(seeds: range) -> None:
    for seed in seeds:
        instance = sketch(seed).instance
        assert every_plan_bound(instance, peak_bytes(instance, instance.save_everything)) == 0.0


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.sampled_from([10, 10**4, 10**9]), part=st.integers(0, 4))
def test_large_bytes_do_not_break_the_bound(seed: int, factor: int, part: int) -> None:
    instance = sketch(seed, max_values=9).instance
    budget = sample_budgets(instance)[part]
    recomputed = solve_exact(instance, budget)
    assert recomputed is not None
    large = replace(instance, nbytes=instance.nbytes * factor, workspace=instance.workspace * factor)
    assert every_plan_bound(large, budget * factor) <= extra_seconds(instance, recomputed)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.sampled_from([1e-9, 1e-3, 1e6]), part=st.integers(0, 4))
def test_small_seconds_do_not_break_the_bound(seed: int, factor: float, part: int) -> None:
    instance = sketch(seed, max_values=9).instance
    budget = sample_budgets(instance)[part]
    recomputed = solve_exact(instance, budget)
    assert recomputed is not None
    assert every_plan_bound(replace(instance, costs=instance.costs * factor), budget) <= factor * extra_seconds(
        instance, recomputed
    )
