"""Save, recompute or offload: the planners against every choice there is on small graphs with a link."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations

import pytest
from graphs import UNIT, chain
from graphs import problem as chain_problem
from hosted_oracle import HostedOracle, random_hosted_problem

from autockpt.cost_models import load_profile
from autockpt.passes.generators import Exact
from autockpt.passes.planners.frontier import PLANNERS, Frontier
from autockpt.passes.problem import Problem, plans_saving, verify

WITHOUT_EXACT = tuple(generator for generator in PLANNERS["auto"] if generator is not Exact)
SHARES = (0.0, 0.3, 0.7)


@cache
def every_plan_of(seed: int) -> tuple[Problem, HostedOracle]:
    posed = random_hosted_problem(seed)
    return posed, HostedOracle.of(posed)


def posed_budgets(seeds: range) -> Iterator[tuple[Problem, HostedOracle, list[int]]]:
    """Random problems, each with all of its plans and three budgets, the lowest of which only its leanest plans fit."""
    for seed in seeds:
        posed, oracle = every_plan_of(seed)
        low, high = oracle.min_peak_bytes, oracle.fastest_bytes
        yield posed, oracle, [low + int((high - low) * share) for share in SHARES]


def test_the_exact_search_equals_brute_force_over_every_plan_with_a_link(seeds: range) -> None:
    offloading = compared = 0
    for posed, oracle, budgets in posed_budgets(seeds):
        frontier = Frontier(posed, (Exact,))
        exact = Exact(frontier.space)
        lowest = exact.lowest()
        assert min(frontier.space.fastest_cut.peak_bytes, lowest.peak_bytes if lowest else 2**60) == budgets[0]
        for budget_bytes in budgets:
            found = exact.within(budget_bytes, float("inf"))
            assert found is not None, "a plan that fits is missed"
            verify(posed, found.plan)
            assert found.peak_bytes == frontier.simulator.peak_bytes(found.plan) <= budget_bytes
            assert found.host_bytes <= posed.host_bytes
            assert abs(found.seconds - oracle.least_seconds(budget_bytes)) < 1e-9
            offloading += bool(found.plan.offloaded)
            compared += 1
    assert compared == len(SHARES) * len(seeds)
    assert offloading >= compared // 4


def test_the_default_planner_is_optimal_on_small_graphs_with_a_link(seeds: range) -> None:
    for posed, oracle, budgets in posed_budgets(seeds[: len(seeds) // 3]):
        frontier = Frontier(posed)
        assert frontier.lowest.peak_bytes == budgets[0]
        for budget_bytes in budgets:
            found = frontier.within(budget_bytes)
            assert found is not None
            assert abs(found.seconds - oracle.least_seconds(budget_bytes)) < 1e-9


def test_without_the_exact_search_it_is_within_three_percent_on_average(seeds: range) -> None:
    """What large graphs get. At the minimum peak it may find no plan; so may it without a link."""
    ratios, missed = [], 0
    for posed, oracle, budgets in posed_budgets(seeds):
        frontier = Frontier(posed, WITHOUT_EXACT)
        for budget_bytes in budgets:
            found, best = frontier.within(budget_bytes), oracle.least_seconds(budget_bytes)
            if found is None:
                missed += 1
                continue
            verify(posed, found.plan)
            assert found.peak_bytes <= budget_bytes
            assert found.host_bytes <= posed.host_bytes
            assert found.seconds >= best - 1e-9
            ratios.append(found.seconds / best)
    assert sum(ratios) / len(ratios) <= 1.03
    assert missed <= 0.1 * len(ratios)


def test_the_bound_for_every_plan_is_never_above_brute_force_with_a_link(seeds: range) -> None:
    for posed, oracle, budgets in posed_budgets(seeds):
        space = Frontier(posed).space
        for budget_bytes in budgets:
            bound, best = space.hosted_bound_seconds(budget_bytes), oracle.least_seconds(budget_bytes)
            assert bound <= best + 1e-6
            assert bound <= space.bound_seconds(budget_bytes)


@pytest.mark.parametrize("slowness", [1, 4, 16, 64])
def test_the_bound_for_every_plan_rises_as_the_link_gets_slower(slowness: int) -> None:
    """A chain of six with two saved: the other four recomputed, copied, or some of each."""
    device = replace(
        load_profile("cpu"),
        launch_seconds=0.0,
        fresh_above_bytes=0,
        device_to_host_bytes_per_second=8.0 * UNIT / slowness,
        host_to_device_bytes_per_second=8.0 * UNIT / slowness,
        copy_latency_seconds=0.0,
    )
    posed = replace(chain_problem(chain(6)), device=device, host_bytes=2**40)
    frontier = Frontier(posed)
    budget_bytes = frontier.space.static_bytes + 2 * UNIT
    bound, best = frontier.space.hosted_bound_seconds(budget_bytes), frontier.within(budget_bytes + UNIT)
    assert best is not None
    overhead = bound - frontier.fastest.seconds
    assert frontier.space.bound_seconds(budget_bytes) - frontier.fastest.seconds == pytest.approx(4.0)
    # Of B units on the host at r units a second, the seven seconds of the forward and the six of the backward cover
    # 7 r and 6 r: max(4 - B, B / r - 6) + max(0, B / r - 7) is least at B = 10 / 3 for r = 1 / 2, at 7 / 8 for 1 / 8.
    assert overhead == pytest.approx({1: 0.0, 4: 0.0, 16: 2 / 3, 64: 3.125}[slowness], abs=1e-3)
    assert frontier.space.hosted_bound_seconds(budget_bytes + UNIT) <= best.seconds + 1e-9


def test_the_bound_of_the_class_is_never_above_its_best_plan_with_a_link(seeds: range) -> None:
    """Against every saved set with recomputation just in time, and of each every set of copies at every moment."""
    tight = compared = 0
    for seed in seeds:
        posed = random_hosted_problem(seed)
        names = [value.name for value in posed.graph.values if value.name.startswith("f")]
        sets = (chosen for size in range(len(names) + 1) for chosen in combinations(names, size))
        oracle = HostedOracle.of(posed, {plan: None for chosen in sets for plan in plans_saving(posed, chosen)})
        space = Frontier(posed).space
        low, high = oracle.min_peak_bytes, oracle.fastest_bytes
        for share in SHARES:
            budget_bytes = low + int((high - low) * share)
            bound, best = space.hosted_class_bound_seconds(budget_bytes), oracle.least_seconds(budget_bytes)
            assert bound <= best + 1e-6
            tight += bound > space.hosted_bound_seconds(budget_bytes) + 1e-6
            compared += 1
    assert tight >= compared // 10
