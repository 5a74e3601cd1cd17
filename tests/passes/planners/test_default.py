"""The default planner against brute force, with its searches for large graphs as well as the exact one for small."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import optima, sample_budgets
from random_instances import sketch

from autockpt.passes.generators.exact import Exact
from autockpt.passes.graph.order import leaves_first, traced_order
from autockpt.passes.instances.from_graph import instance_of
from autockpt.passes.planners.frontier import PLANNERS, Frontier
from autockpt.passes.problem.plan import Problem
from autockpt.passes.problem.verify import verify

WITHOUT_EXACT = tuple(generator for generator in PLANNERS["auto"] if generator is not Exact)


class Posed:
    """A random joint graph and five budgets, with the optimum of each: in the planners' order of the backward, and in
    the better of its two orders."""

    def __init__(self, seed: int) -> None:
        self.problem: Problem = sketch(seed).problem
        self.instance, _ = instance_of(self.problem, leaves_first(self.problem.graph))
        given = self.problem.static_bytes
        here = sample_budgets(self.instance)
        self.budgets = [budget + given for budget in here]
        self.optima = optima(self.instance, here)
        traced, _ = instance_of(self.problem, traced_order(self.problem.graph))
        self.least = [min(pair) for pair in zip(self.optima, optima(traced, here), strict=True)]
        self.step = sum(self.problem.seconds.values())


def test_the_default_planner_is_optimal_on_small_graphs_and_never_without_a_plan(seeds: range) -> None:
    """No slower than brute force in the planners' order; some plans that save everything win by the traced order."""
    checked = 0
    for seed in seeds:
        posed = Posed(seed)
        frontier = Frontier(posed.problem)
        for budget, optimum, least in zip(posed.budgets, posed.optima, posed.least, strict=True):
            found = frontier.within(budget)
            assert (found is not None) or not isfinite(optimum)
            if found is not None:
                verify(posed.problem, found.plan)
                assert frontier.simulator.peak_bytes(found.plan) <= budget
                assert least - 1e-9 <= found.recompute_seconds <= optimum + 1e-9
                checked += 1
    assert checked


def test_without_the_exact_search_it_is_still_near(seeds: range) -> None:
    """What large graphs get: cuts, interval program, evictions, two-level plans."""
    gaps, missed, posed_budgets = [], 0, 0
    for seed in seeds:
        posed = Posed(seed)
        frontier = Frontier(posed.problem, WITHOUT_EXACT)
        for budget, optimum, least in zip(posed.budgets, posed.optima, posed.least, strict=True):
            found = frontier.within(budget)
            posed_budgets += isfinite(optimum)
            missed += isfinite(optimum) and found is None
            if found is not None:
                assert frontier.simulator.peak_bytes(found.plan) <= budget
                assert found.recompute_seconds >= least - 1e-9
                gaps.append((found.recompute_seconds - least) / (posed.step + least))
    assert sum(gaps) / len(gaps) < 0.03
    assert missed <= 0.1 * posed_budgets


def test_the_bound_for_every_plan_is_never_above_the_optimum(seeds: range) -> None:
    for seed in seeds:
        posed = Posed(seed)
        frontier = Frontier(posed.problem)
        for budget, optimum in zip(posed.budgets, posed.optima, strict=True):
            slack = budget - frontier.space.static_bytes
            assert frontier.space.hull.bound_seconds(slack) <= optimum + 1e-6


def test_no_plan_with_single_recomputations_is_below_the_bound_of_its_class(seeds: range) -> None:
    """The interval program's own plans among them."""
    checked = 0
    for seed in seeds:
        posed = Posed(seed)
        frontier = Frontier(posed.problem, PLANNERS["interval_program"])
        for budget in posed.budgets:
            bound = frontier.space.intervals.bound_seconds(budget)
            found = frontier.within(budget)
            once = found is not None and len(set(found.plan.backward)) == len(found.plan.backward)
            if once and found.plan.saved.isdisjoint(found.plan.backward):
                checked += 1
                assert found.recompute_seconds >= bound - 1e-6
    assert checked


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), exact=st.booleans())
def test_a_larger_budget_is_never_slower(seed: int, exact: bool) -> None:
    problem = sketch(seed).problem
    frontier = Frontier(problem, PLANNERS["auto"] if exact else WITHOUT_EXACT)
    low, high = frontier.lowest.peak_bytes, frontier.fastest.peak_bytes
    slowest = inf
    for budget in sorted({low + (high - low) * step // 9 for step in range(10)}):
        found = frontier.within(budget)
        assert found is not None
        assert found.seconds <= slowest
        slowest = found.seconds


def scaled(problem: Problem, factor: int) -> Problem:
    sizes = {name: nbytes * factor for name, nbytes in problem.graph.bytes.items()}
    workspace = {name: nbytes * factor for name, nbytes in (problem.workspace or {}).items()}
    return replace(problem, graph=replace(problem.graph, bytes=sizes), workspace=workspace)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.sampled_from([2, 7, 1024]))
def test_scaling_all_bytes_and_the_budget_changes_nothing(seed: int, factor: int) -> None:
    problem = sketch(seed).problem
    small, large = Frontier(problem), Frontier(scaled(problem, factor))
    low, high = small.lowest.peak_bytes, small.fastest.peak_bytes
    for step in range(4):
        budget = low + (high - low) * step // 3
        one, other = small.within(budget), large.within(budget * factor)
        assert one is not None
        assert other is not None
        assert one.recompute_seconds == pytest.approx(other.recompute_seconds)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), exact=st.booleans())
def test_every_plan_verifies_and_never_recomputes_a_must_save_value(seed: int, exact: bool) -> None:
    problem = sketch(seed).problem
    frontier = Frontier(problem, PLANNERS["auto"] if exact else WITHOUT_EXACT)
    low, high = frontier.lowest.peak_bytes, frontier.fastest.peak_bytes
    for step in range(5):
        found = frontier.within(low + (high - low) * step // 4)
        assert found is not None
        verify(problem, found.plan)
        assert problem.must_save.keys().isdisjoint(found.plan.backward)
