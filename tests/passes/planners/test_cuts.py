"""The priced cut is exact: against every subset by brute force, and against networkx."""

from __future__ import annotations

from itertools import chain as concatenate
from itertools import combinations

import networkx as nx
import pytest
from graphs import chain, problem, random_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from autockpt.passes.graph.joint import Role, Trait
from autockpt.passes.planners.cuts import NoCut, PricedCut
from autockpt.passes.planners.schedule import schedule, traced_order
from autockpt.passes.problem.plan import Problem

prices = st.floats(min_value=1e-6, max_value=1e-1)


def cost(asked: Problem, saved: frozenset[str], price: float) -> float:
    """Seconds of recomputation plus the price of what is saved; infinite where a must_save value is recomputed."""
    again = set(schedule(asked.graph, saved, traced_order(asked.graph)).backward) & asked.graph.required_forward
    if again & asked.must_save.keys():
        return float("inf")
    return sum(asked.seconds[name] for name in again) + price * sum(asked.graph.bytes_of(name) for name in saved)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), price=prices)
def test_no_set_of_kept_values_is_cheaper(seed: int, price: float) -> None:
    asked = random_problem(seed)
    forward = [v.name for v in asked.graph.values if v.role is Role.FORWARD and v.name not in asked.unsavable]
    subsets = concatenate.from_iterable(combinations(forward, size) for size in range(len(forward) + 1))

    best = min(cost(asked, frozenset(saved), price) for saved in subsets)

    assert cost(asked, PricedCut(asked).saved(price), price) == pytest.approx(best, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), price=prices)
def test_networkx_finds_a_cut_of_the_same_value(seed: int, price: float) -> None:
    asked = random_problem(seed, max_values=12)
    flow = nx.DiGraph()
    for v in asked.graph.values:
        if v.role in (Role.BACKWARD, Role.TANGENT):
            continue
        fixed = v.role.is_graph_input or v.name in asked.must_save
        flow.add_edge("source", (v.name, "in"), **({} if fixed else {"capacity": asked.seconds[v.name]}))
        size = 0 if v.role.is_graph_input else asked.graph.bytes_of(v.name)
        flow.add_edge((v.name, "in"), (v.name, "out"), capacity=price * size)
        for source in v.inputs:
            flow.add_edge((source, "out"), (v.name, "in"))
    for name in asked.graph.backward_reads:
        flow.add_edge((name, "out"), "sink")

    value, _ = nx.minimum_cut(flow, "source", "sink")

    assert cost(asked, PricedCut(asked).saved(price), price) == pytest.approx(value, rel=1e-6)


def test_a_pinned_value_is_kept_at_any_price() -> None:
    asked = problem(chain(4), must_save={"f1": "random: would draw again"})
    assert "f1" in PricedCut(asked).saved(1e9)


def test_a_value_tagged_must_recompute_is_never_kept() -> None:
    asked = problem(chain(4, f2=[Trait.MUST_RECOMPUTE]))
    assert "f2" not in PricedCut(asked).saved(1e-12)


def test_two_prices_move_early_and_late_values_apart() -> None:
    cut = PricedCut(problem(chain(8)))
    assert cut.saved(1.0, 1e-12, border=0.5) == {"f4", "f5", "f6", "f7"}
    assert cut.saved(1e-12, 1.0, border=0.5) == {"f0", "f1", "f2", "f3"}


def test_what_may_be_neither_kept_nor_recomputed_is_refused() -> None:
    graph = chain(3, f1=[Trait.MUST_RECOMPUTE])
    asked = problem(graph, seconds={"f1": float("inf")})
    with pytest.raises(NoCut):
        PricedCut(asked).saved(1e-3)
