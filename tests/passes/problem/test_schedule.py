"""Recomputation comes just before its first use, and weight gradients come early."""

from __future__ import annotations

from graphs import chain, joint, problem, random_problem, schedule, value
from hypothesis import given, settings
from hypothesis import strategies as st

from autockpt.passes.generators.cuts import saved_at
from autockpt.passes.graph.order import leaves_first, traced_order
from autockpt.passes.graph.value import Kind, Role
from autockpt.passes.problem.verify import verify


def test_a_missing_value_is_recomputed_just_before_it_is_read() -> None:
    graph = chain(3)
    plan = schedule(graph, {"f0", "f2"}, traced_order(graph))
    assert plan.backward == ("b2", "f1", "b1", "b0")


def test_nothing_saved_recomputes_the_whole_forward_at_once() -> None:
    graph = chain(3)
    plan = schedule(graph, (), traced_order(graph))
    assert plan.backward == ("f0", "f1", "f2", "b2", "b1", "b0")


def test_a_weight_gradient_comes_before_the_input_gradient_that_autograd_asks_for_first() -> None:
    graph = joint(
        [
            value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT),
            value("f", "x"),
            value("loss", "f", nbytes=1),
            value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT),
            value("d", "t", role=Role.BACKWARD),
            value("to_input", "d", role=Role.BACKWARD),
            value("to_weight", "d", "f", role=Role.BACKWARD),
            value("more", "to_input", role=Role.BACKWARD),
            value("g0", "more", role=Role.BACKWARD),
            value("g1", "more", role=Role.BACKWARD),
        ],
        ["loss"],
        ["to_weight", "g0", "g1"],
    )
    assert traced_order(graph)[:3] == ("d", "to_input", "to_weight")
    assert leaves_first(graph) == ("d", "to_weight", "to_input", "more", "g0", "g1")


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**6), price=st.floats(1e-9, 1e-1))
def test_every_scheduled_cut_can_run(seed: int, price: float) -> None:
    posed = random_problem(seed, max_values=10)
    saved = saved_at(posed, price)
    for order in (traced_order(posed.graph), leaves_first(posed.graph)):
        verify(posed, schedule(posed.graph, saved, order))


def test_an_output_of_the_backward_that_needs_no_tangent_is_made_too() -> None:
    graph = chain(2)
    graph = joint(graph.values, graph.forward_outputs, [*graph.backward_outputs, "f0"])
    plan = schedule(graph, {"f1"}, traced_order(graph))
    assert "f0" in plan.backward
    verify(problem(graph), plan)
