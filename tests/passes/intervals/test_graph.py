"""Retention intervals and moments of graphs small enough to draw."""

from __future__ import annotations

import numpy as np
from graphs import UNIT, chain, joint, problem, schedule, value

from autockpt.passes.forecast.simulator import Simulator
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.order import traced_order
from autockpt.passes.graph.value import Kind, Role, Trait
from autockpt.passes.intervals.graph import IntervalGraph


def interval_graph(graph: JointGraph) -> IntervalGraph:
    return IntervalGraph(problem(graph), traced_order(graph))


def late_reader() -> JointGraph:
    """x -> a -> b -> loss; the backward reads b last, and a not at all."""
    return joint(
        [
            value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT),
            value("a", "x"),
            value("b", "a"),
            value("c", "a"),
            value("loss", "b", "c", nbytes=1),
            value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT, nbytes=1),
            value("g0", "t", "b", role=Role.BACKWARD),
            value("g1", "g0", role=Role.BACKWARD),
            value("g2", "g1", "c", role=Role.BACKWARD),
        ],
        ["loss"],
        ["g2"],
    )


def test_an_interval_runs_from_the_last_forward_read_to_the_first_backward_read() -> None:
    intervals = interval_graph(chain(3)).intervals
    # f0 f1 f2 loss | b2 b1 b0
    assert intervals.first_moment.tolist()[:3] == [2, 3, 4]
    assert intervals.last_moment.tolist()[:3] == [5, 4, 3]


def test_a_value_that_only_recomputations_read_is_held_for_the_last_of_them() -> None:
    graph = interval_graph(late_reader())
    # a b c loss | g0 g1 g2: a is held until c is recomputed for g2; in some plan only until b is, for g0.
    assert graph.intervals.last_moment.tolist()[:3] == [5, 3, 5]
    assert graph.shortest_intervals.last_moment.tolist()[:3] == [3, 3, 5]


def test_the_shortest_intervals_do_not_depend_on_what_was_computed_before() -> None:
    first, second = interval_graph(late_reader()), interval_graph(late_reader())
    _ = second.intervals
    assert first.shortest_intervals.last_moment.tolist() == second.shortest_intervals.last_moment.tolist()


def test_a_recomputation_counts_for_the_backward_operation_that_it_runs_for() -> None:
    graph = chain(3)
    plan = schedule(graph, {"f0"}, traced_order(graph))
    assert plan.backward == ("f1", "f2", "b2", "b1", "b0")
    live, other = interval_graph(graph).live_and_other_bytes(Simulator(problem(graph)), plan)
    # x; f0 until f1 has read it, then saved; at b2 also f1, f2 and b2, with the loss and its tangent.
    units = [2, 3, 4, 3, 5, 5, 4]
    assert (live // UNIT).tolist() == units
    saved = np.array([0, 0, 1, 1, 1, 1, 0])
    assert (other // UNIT).tolist() == (np.array(units) - saved).tolist()


def test_an_output_that_may_not_be_saved_is_not_free_to_save() -> None:
    """A user's checkpointed region whose result the model also returns: fuzzed, such a plan was refused as broken."""
    plain = chain(3, f1=[Trait.MUST_RECOMPUTE])
    graph = joint(plain.values, ["loss", "f1", "f2"], plain.backward_outputs)
    intervals = interval_graph(graph).intervals
    assert np.isinf(intervals.nbytes[1])
    assert intervals.nbytes[2] == 0.0
    assert intervals.free_to_save.tolist()[:3] == [False, False, True]
