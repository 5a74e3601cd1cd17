"""The forecast on graphs whose memory can be counted on paper."""

from __future__ import annotations

from dataclasses import replace

from graphs import UNIT, chain, forecast, joint, problem, schedule, value
from hypothesis import given, settings
from hypothesis import strategies as st

from autockpt.passes.forecast.result import Content
from autockpt.passes.graph.order import traced_order
from autockpt.passes.graph.value import Kind, Role, Trait
from autockpt.passes.problem.plan import Lowering, Plan, Problem


def live(posed: Problem, plan: Plan) -> list[tuple[str, int]]:
    return [(moment.operation, moment.live_bytes) for moment in forecast(posed, plan).timeline]


def test_saving_everything_peaks_where_the_first_gradient_is_computed() -> None:
    graph = chain(3)
    plan = schedule(graph, {"f0", "f1", "f2"}, traced_order(graph))
    # x, then f0 f1 f2 one by one; in the backward the loss and its tangent, a byte each, are there too.
    assert live(problem(graph), plan) == [
        ("f0", 2 * UNIT),
        ("f1", 3 * UNIT),
        ("f2", 4 * UNIT),
        ("loss", 4 * UNIT + 1),
        ("b2", 5 * UNIT + 2),
        ("b1", 5 * UNIT + 2),
        ("b0", 4 * UNIT + 2),
    ]


def test_recomputing_everything_at_once_saves_nothing() -> None:
    graph = chain(3)
    saved = forecast(problem(graph), schedule(graph, {"f0", "f1", "f2"}, traced_order(graph)))
    dropped = forecast(problem(graph), schedule(graph, (), traced_order(graph)))
    assert dropped.peak_bytes == saved.peak_bytes
    assert dropped.recompute_seconds == 3.0


def test_a_value_recomputed_twice_is_freed_in_between() -> None:
    graph = chain(3)
    held = Plan(frozenset({"f0"}), ("f1", "f2", "b2", "b1", "b0"))
    twice = Plan(frozenset({"f0"}), ("f1", "f2", "b2", "f1", "b1", "b0"))
    assert dict(live(problem(graph), held))["b2"] == 5 * UNIT + 2
    assert dict(live(problem(graph), twice))["b2"] == 4 * UNIT + 2
    assert forecast(problem(graph), twice).recompute_seconds == 3.0


def test_a_view_has_no_bytes_of_its_own_but_holds_its_base() -> None:
    graph = joint(
        [
            value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT),
            value("f", "x"),
            value("v", "f", kind=Kind.VIEW, storage="f"),
            value("loss", "v", nbytes=1),
            value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT, nbytes=1),
            value("b", "t", "v", role=Role.BACKWARD),
        ],
        ["loss"],
        ["b"],
    )
    plan = schedule(graph, {"f"}, traced_order(graph))
    assert plan.backward == ("v", "b")
    assert live(problem(graph), plan) == [("f", 2 * UNIT), ("loss", 2 * UNIT + 1), ("b", 3 * UNIT + 2)]


def test_the_peak_is_explained_to_the_byte() -> None:
    graph = chain(5)
    shown = forecast(problem(graph), schedule(graph, {"f0", "f3"}, traced_order(graph)))
    assert sum(item.nbytes for item in shown.at_peak) == shown.peak_bytes
    assert shown.filled_by()[Content.INPUT] == UNIT
    assert shown.filled_by()[Content.SAVED] >= UNIT


def test_gradients_live_until_the_end() -> None:
    graph = chain(2)
    graph = joint(graph.values, graph.forward_outputs, ["b1", "b0"])
    plan = schedule(graph, {"f0", "f1"}, traced_order(graph))
    assert dict(live(problem(graph), plan))["b0"] == 4 * UNIT + 2


def test_a_tangent_made_of_others_is_freed_after_its_last_read_and_these_are_held() -> None:
    graph = joint(
        [
            value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT),
            value("g0", role=Role.TANGENT, kind=Kind.GRAPH_INPUT),
            value("g1", role=Role.TANGENT, kind=Kind.GRAPH_INPUT),
            value("t", "g0", "g1", role=Role.TANGENT, kind=Kind.GRAPH_INPUT),
            value("f", "x"),
            value("view", "f", kind=Kind.VIEW, storage="f"),
            value("b1", "t", role=Role.BACKWARD),
            value("b0", "b1", role=Role.BACKWARD),
        ],
        ["f", "view"],
        ["b0"],
    )
    plan = schedule(graph, {"f"}, traced_order(graph))
    # x, f, g0 and g1 all the time; t is read by b1 alone.
    assert live(problem(graph), plan) == [("f", 2 * UNIT), ("b1", 6 * UNIT), ("b0", 6 * UNIT)]


def test_a_gradient_in_another_layout_is_copied_when_the_backward_is_over() -> None:
    graph = joint(
        [
            value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT),
            value("f", "x"),
            value("loss", "f", nbytes=1),
            value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT, nbytes=1),
            value("g", "t", "f", role=Role.BACKWARD, traits=[Trait.OTHER_LAYOUT]),
            value("small", "t", role=Role.BACKWARD, nbytes=1),
        ],
        ["loss"],
        ["g", "small"],
    )
    plan = schedule(graph, {"f"}, traced_order(graph))
    # f is freed before `small` runs. Then there are x, g and its copy, and three single bytes.
    assert live(problem(graph), plan)[-2:] == [("g", 3 * UNIT + 2), ("small", 3 * UNIT + 3)]
    assert sum(item.nbytes for item in forecast(problem(graph), plan).at_peak) == 3 * UNIT + 3


def test_pointwise_values_that_only_loops_read_are_never_allocated() -> None:
    graph = joint(
        [
            value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT),
            value("p", "x", kind=Kind.POINTWISE, operator="aten.mul.Tensor"),
            value("q", "p", kind=Kind.POINTWISE, operator="aten.mul.Tensor"),
            value("f", "q"),
            value("loss", "f", nbytes=1),
            value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT, nbytes=1),
            value("b", "t", "f", role=Role.BACKWARD),
        ],
        ["loss"],
        ["b"],
    )
    plan = schedule(graph, {"f"}, traced_order(graph))
    compiled = forecast(problem(graph, lowering=Lowering.INDUCTOR), plan)
    assert [moment.operation for moment in compiled.timeline] == ["q", "f", "loss", "b"]
    assert compiled.timeline[1].live_bytes == 3 * UNIT  # x, q and f


def test_a_loop_writes_in_place_over_an_input_that_dies_there() -> None:
    graph = joint(
        [
            value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT),
            value("f", "x"),
            value("loss", "f", nbytes=1),
            value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT, nbytes=1),
            value("m", "t", role=Role.BACKWARD),
            value("p", "m", "f", role=Role.BACKWARD, kind=Kind.POINTWISE, operator="aten.mul.Tensor"),
            value("b", "p", role=Role.BACKWARD),
        ],
        ["loss"],
        ["b"],
    )
    plan = schedule(graph, {"f"}, traced_order(graph))
    compiled = dict(live(problem(graph, lowering=Lowering.INDUCTOR), plan))
    assert compiled["p"] == 3 * UNIT + 2  # x, f and m, with p written over one of the two
    assert dict(live(problem(graph), plan))["p"] == 4 * UNIT + 2


@settings(max_examples=50, deadline=None)
@given(saved=st.sets(st.sampled_from(["f0", "f1", "f2", "f3", "f4"])))
def test_live_bytes_never_fall_below_the_graph_inputs(saved: set[str]) -> None:
    graph = chain(5)
    for lowering in Lowering:
        shown = forecast(problem(graph, lowering=lowering), schedule(graph, saved, traced_order(graph)))
        assert all(moment.live_bytes >= shown.graph_input_bytes for moment in shown.timeline)
        assert sum(item.nbytes for item in shown.at_peak) == shown.peak_bytes


def test_an_operation_run_again_for_one_of_its_results_allocates_all_of_them() -> None:
    """Of a pair that the backward reads one half is saved: the kernel that recomputes the other writes both."""
    graph = joint(
        [
            value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT),
            replace(value("pair", "x", storage=""), spec=None),
            value("left", "pair", kind=Kind.PART, nbytes=3 * UNIT),
            value("right", "pair", kind=Kind.PART, nbytes=UNIT),
            value("loss", "left", "right", nbytes=1),
            value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT, nbytes=1),
            value("b", "t", "left", "right", role=Role.BACKWARD, nbytes=1),
        ],
        ["loss"],
        ["b"],
    )
    shown = live(problem(graph), Plan(frozenset({"left"}), ("pair", "right", "b")))
    in_backward = [nbytes for _, nbytes in shown][[name for name, _ in shown].index("loss") + 1 :]
    # x, the saved left, loss and tangent; then left and right again, of which only right is read.
    assert in_backward == [8 * UNIT + 2, 5 * UNIT + 3]
