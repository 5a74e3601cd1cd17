"""Cut points are where few bytes are live, and block boundaries those between which the graph repeats itself."""

from __future__ import annotations

import pytest
from graphs import UNIT, hills, joint, value

from autockpt.passes.graph.cut_points import (
    DEEP,
    CutPoint,
    ForwardLiveness,
    block_boundaries,
    find_cut_points,
    local_minima,
)
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.value import Kind, Role


def names(graph: JointGraph, cut_points: tuple[CutPoint, ...]) -> list[str]:
    return [graph.values[point.position].name for point in cut_points]


@pytest.mark.parametrize(
    ("nbytes", "steepness", "moments"),
    [
        pytest.param([1, 5, 2, 2, 6, 3, 3, 1], 1.0, [2], id="the first of equal moments, and none at the ends"),
        pytest.param([9, 5, 6, 5, 9], 1.0, [1, 3], id="every local minimum"),
        pytest.param([9, 5, 6, 5, 9], 1.5, [1], id="one where the rise between two is small"),
        pytest.param([9, 6, 5, 6, 4, 9], 1.5, [4], id="the lowest of those that are not separated"),
        pytest.param([9, 7, 9, 5, 9], 1.5, [3], id="none where the fall is small"),
        pytest.param([], 1.0, [], id="nothing"),
    ],
)
def test_a_cut_point_is_lower_than_before_and_after(nbytes: list[int], steepness: float, moments: list[int]) -> None:
    assert local_minima(nbytes, steepness) == moments


def test_what_crosses_a_moment_is_what_the_rest_of_the_forward_reads() -> None:
    values = [
        value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT),
        value("skip", "x"),
        value("wide", "x", nbytes=5 * UNIT),
        value("narrow", "wide", "x"),
        value("sum", "narrow", "skip", nbytes=2 * UNIT),
    ]
    liveness = ForwardLiveness(joint(values, ["sum"], []))
    (point,) = liveness.cut_points([2])
    assert point.crossing == {"skip", "narrow"}
    assert point.nbytes == 2 * UNIT
    assert liveness.nbytes.tolist() == [UNIT, 6 * UNIT, 2 * UNIT, 0]


def test_a_moment_that_no_storage_crosses_is_no_cut_point() -> None:
    liveness = ForwardLiveness(hills(2))
    assert liveness.cut_points([len(liveness.operations) - 1]) == ()


@pytest.mark.parametrize("steepness", [1.0, DEEP])
def test_the_forward_is_narrow_between_its_hills(steepness: float) -> None:
    graph = hills(4)
    assert names(graph, find_cut_points(graph, steepness)) == ["n0", "n1", "n2", "n3"]


def test_an_operation_with_several_results_has_written_them_before_they_are_taken_out() -> None:
    values = [
        value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT),
        value("wide", "x", nbytes=5 * UNIT),
        value("several", "wide", storage="", operator="aten.attention.default"),
        value("part", "several", kind=Kind.PART, nbytes=5 * UNIT, operator="getitem"),
        value("narrow", "part"),
        value("wider", "narrow", nbytes=5 * UNIT),
        value("loss", "wider", nbytes=1),
    ]
    graph = joint(values, ["loss"], [])
    assert names(graph, find_cut_points(graph)) == ["narrow"]


def test_a_block_with_a_cut_point_inside_is_one_block() -> None:
    graph = hills(6, operators=("attention", "mm"))
    cut_points = find_cut_points(graph)
    assert names(graph, cut_points) == ["n0", "n1", "n2", "n3", "n4", "n5"]
    assert names(graph, block_boundaries(graph, cut_points)) == ["n1", "n3", "n5"]


def test_every_cut_point_is_a_block_boundary_where_nothing_repeats() -> None:
    graph = hills(3, operators=("attention", "mm", "bmm"))
    cut_points = find_cut_points(graph)
    assert block_boundaries(graph, cut_points) == cut_points


def test_blocks_repeat_whatever_the_order_of_their_independent_operations() -> None:
    values = [value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT), value("stem", "x", nbytes=5 * UNIT)]
    previous = "n0"
    values.append(value("n0", "stem"))
    for number in range(4):
        halves = [value(f"{kind}{number}", previous, nbytes=3 * UNIT, operator=f"aten.{kind}.default") for kind in "ab"]
        values += halves if number % 2 else reversed(halves)
        values.append(value(f"c{number}", f"a{number}", f"b{number}", operator="aten.c.default"))
        values.append(value(f"d{number}", f"c{number}", nbytes=5 * UNIT, operator="aten.d.default"))
        values.append(value(f"n{number + 1}", f"d{number}"))
        previous = f"n{number + 1}"
    graph = joint([*values, value("loss", previous, nbytes=1)], ["loss"], [])
    boundaries = block_boundaries(graph, find_cut_points(graph))
    assert names(graph, boundaries) == ["c0", "c1", "c2", "c3"]
