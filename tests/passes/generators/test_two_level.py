"""Two-level checkpointing: few cut points saved, the rest rebuilt from them."""

from __future__ import annotations

import math

import pytest
from graphs import UNIT, chain, joint, problem, value

from autockpt.passes.graph.cut_points import ForwardLiveness
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.order import traced_order
from autockpt.passes.graph.value import Kind, Role, Value
from autockpt.passes.planners.frontier import Frontier
from autockpt.passes.problem.schedule import Scheduler
from autockpt.passes.problem.verify import verify


def network(blocks: int, skips: str) -> JointGraph:
    """Blocks of a wide value between narrow ones; `skips` says what else a block reads."""
    values: list[Value] = [value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT)]
    stream = ["x"]
    for number in range(blocks):
        extra = {
            "residual": [stream[-1]],
            "dense": stream[-3:],
            "u": [stream[blocks - number]] if number > blocks // 2 else [],
        }[skips]
        values.append(value(f"w{number}", stream[-1], nbytes=4 * UNIT))
        values.append(value(f"f{number}", f"w{number}", *dict.fromkeys(extra)))
        stream.append(f"f{number}")
    values += [value("loss", stream[-1], nbytes=1), value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT, nbytes=1)]
    gradient = "t"
    for number in reversed(range(blocks)):
        values.append(value(f"b{number}", gradient, f"w{number}", stream[number], role=Role.BACKWARD))
        gradient = f"b{number}"
    return joint(values, ["loss"], [gradient])


def test_what_lies_behind_an_inner_value_is_recomputed_a_second_time() -> None:
    graph = chain(6)
    plan = Scheduler(graph, traced_order(graph))(["f0"], inner=["f3"])
    runs = {name: plan.backward.count(name) for name in ("f1", "f2", "f3", "f4", "f5")}
    assert runs == {"f1": 2, "f2": 2, "f3": 1, "f4": 1, "f5": 1}
    verify(problem(graph), plan)


@pytest.mark.parametrize("skips", ["residual", "dense", "u"])
def test_beyond_what_the_forward_holds_the_minimum_peak_grows_like_the_square_root_of_depth(skips: str) -> None:
    """The forward of a U holds a skip for every block on its way down; no plan can help that."""
    for depth in (8, 32, 128):
        frontier = Frontier(problem(network(depth, skips)))
        verify(frontier.problem, frontier.lowest.plan)
        beyond = frontier.lowest.peak_bytes - ForwardLiveness(frontier.problem.graph).nbytes.max()
        assert beyond < 5 * UNIT * math.sqrt(depth)
