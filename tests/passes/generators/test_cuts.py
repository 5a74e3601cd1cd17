"""Cuts at a price are exact, against every subset by brute force and against networkx; their hull is a bound."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain as concatenate
from itertools import combinations
from math import inf, isinf

import networkx as nx
import pytest
from graphs import chain, problem, random_problem, schedule
from hypothesis import given, settings
from hypothesis import strategies as st

from autockpt.passes.forecast.simulator import Simulator
from autockpt.passes.generators.cuts import CutHull, NoCut, saved_at
from autockpt.passes.graph.order import traced_order
from autockpt.passes.graph.value import Role, Source, Trait
from autockpt.passes.problem.plan import Problem

prices = st.floats(min_value=1e-6, max_value=1e-1)


def cost(posed: Problem, saved: frozenset[str], price: float) -> float:
    """Seconds of recomputation plus the price of what is saved; infinite where a must_save value is recomputed."""
    recomputed = set(schedule(posed.graph, saved, traced_order(posed.graph)).backward) & posed.graph.required_forward
    if recomputed & posed.must_save.keys():
        return float("inf")
    return sum(posed.seconds[name] for name in recomputed) + price * sum(posed.graph.bytes_of(name) for name in saved)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), price=prices)
def test_no_saved_set_is_cheaper(seed: int, price: float) -> None:
    posed = random_problem(seed)
    forward = [v.name for v in posed.graph.values if v.role is Role.FORWARD and v.name not in posed.unsavable]
    subsets = concatenate.from_iterable(combinations(forward, size) for size in range(len(forward) + 1))

    best = min(cost(posed, frozenset(saved), price) for saved in subsets)

    assert cost(posed, saved_at(posed, price), price) == pytest.approx(best, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), price=prices)
def test_networkx_finds_a_cut_of_the_same_value(seed: int, price: float) -> None:
    posed = random_problem(seed, max_values=12)
    flow = nx.DiGraph()
    for v in posed.graph.values:
        if v.role in (Role.BACKWARD, Role.TANGENT):
            continue
        fixed = v.role.is_graph_input or v.name in posed.must_save
        flow.add_edge("source", (v.name, "in"), **({} if fixed else {"capacity": posed.seconds[v.name]}))
        size = 0 if v.role.is_graph_input else posed.graph.bytes_of(v.name)
        flow.add_edge((v.name, "in"), (v.name, "out"), capacity=price * size)
        for source in v.inputs:
            flow.add_edge((source, "out"), (v.name, "in"))
    for name in posed.graph.backward_reads:
        flow.add_edge((name, "out"), "sink")

    value, _ = nx.minimum_cut(flow, "source", "sink")

    assert cost(posed, saved_at(posed, price), price) == pytest.approx(value, rel=1e-6)


def test_a_must_save_value_is_saved_at_any_price() -> None:
    posed = problem(chain(4), must_save={"f1": "random: would draw again"})
    assert "f1" in saved_at(posed, 1e9)


def test_a_value_tagged_must_recompute_is_never_saved() -> None:
    posed = problem(chain(4, f2=[Trait.MUST_RECOMPUTE]))
    assert "f2" not in saved_at(posed, 1e-12)


def test_a_value_that_can_be_neither_saved_nor_recomputed_is_refused() -> None:
    graph = chain(3, f1=[Trait.MUST_RECOMPUTE])
    posed = problem(graph, seconds={"f1": float("inf")})
    with pytest.raises(NoCut):
        saved_at(posed, 1e-3)


def test_such_a_value_is_named_with_its_line_and_what_to_change() -> None:
    graph = chain(3)
    view = replace(graph.by_name["f1"], storage="f0", operator="mylib.peek.default", source=Source("model.peek"))
    posed = problem(
        replace(graph, values=tuple(view if v.name == "f1" else v for v in graph.values)),
        must_save={"f1": "nobody vouched for it"},
        seconds={"f1": inf},
    )
    with pytest.raises(NoCut, match=r"`f1` of mylib.peek.default \(.*model.peek.*\) has no bytes of its own") as stuck:
        saved_at(posed, 1e-3)
    assert "(nobody vouched for it); return a clone of it, or vouch for the operator" in str(stuck.value)


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_at_the_bytes_of_a_cut_is_at_most_its_seconds(seed: int) -> None:
    hull = CutHull(random_problem(seed))
    for cut in hull.cuts:
        assert hull.bound_seconds(cut.saved_bytes) <= cut.seconds + 1e-9
    assert hull.bound_seconds(hull.cuts[0].saved_bytes) == pytest.approx(hull.cuts[0].seconds)


def test_less_slack_never_bounds_lower() -> None:
    hull = CutHull(problem(chain(12)))
    bounds = [hull.bound_seconds(slack) for slack in range(0, 14_000, 500)]
    assert bounds == sorted(bounds, reverse=True)
    assert isinf(hull.bound_seconds(-1))


def test_with_few_prices_there_are_few_cuts_and_the_bound_is_no_higher() -> None:
    whole, few = CutHull(random_problem(5, 9)), CutHull(random_problem(5, 9), prices=3)
    assert len(few.cuts) <= 3
    for slack in (0, 2_000, 8_000, inf):
        assert few.bound_seconds(slack) <= whole.bound_seconds(slack) + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_the_seconds_of_a_cut_are_those_of_its_plan(seed: int) -> None:
    posed = random_problem(seed)
    simulator = Simulator(posed)
    for cut in CutHull(posed).cuts:
        plan = schedule(posed.graph, cut.saved, traced_order(posed.graph))
        assert cut.seconds == pytest.approx(simulator.recompute_seconds(plan))
