"""Save, recompute or offload: the planners against every choice there is on small graphs with a link."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from hosted_oracle import HostedOracle, random_hosted_problem

from autockpt.passes.generators import Exact
from autockpt.passes.planners.frontier import PLANNERS, Frontier
from autockpt.passes.problem import Problem, verify

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
