"""What becomes bytes and when: the rules of Inductor's lowering, on graphs that can be counted on paper."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from graphs import UNIT, forecast, joint, problem, schedule, value

from autockpt.passes.forecast.result import Forecast
from autockpt.passes.graph.joint import Kind, Role, Value
from autockpt.passes.graph.order import traced_order
from autockpt.passes.problem.plan import Lowering

ADD, MUL, CAT = "aten.add.Tensor", "aten.mul.Tensor", "aten.cat.default"


def loop(name: str, *inputs: str, operator: str = MUL, bend: str = "", nbytes: int = UNIT) -> Value:
    made = value(name, *inputs, kind=Kind.POINTWISE, role=Role.BACKWARD, operator=operator, nbytes=nbytes)
    return replace(made, index_map=bend)


def matmul(name: str, *inputs: str, nbytes: int = UNIT) -> Value:
    return value(name, *inputs, role=Role.BACKWARD, nbytes=nbytes)


def shifted(name: str, base: str, by: int = 1) -> Value:
    made = value(name, base, kind=Kind.VIEW, storage=base, role=Role.BACKWARD, operator="aten.slice.Tensor")
    return replace(made, index_map=f"aten.slice 0 {by}")


def backward(*values: Value, outputs: Iterable[str]) -> Forecast:
    """The forecast of a step whose backward is these values; `t`, of ten units, is what they start from."""
    start = [
        value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT, nbytes=1),
        value("loss", "x", nbytes=1),
        value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT, nbytes=UNIT),
    ]
    graph = joint([*start, *values], ["loss"], outputs)
    return forecast(problem(graph, lowering=Lowering.INDUCTOR), schedule(graph, (), traced_order(graph)))


def kernels(shown: Forecast) -> list[str]:
    return [moment.operation for moment in shown.timeline if moment.in_backward]


def live(shown: Forecast, operation: str) -> int:
    """Whole units of bytes while this kernel runs; loss and input are a byte each."""
    return next(m.live_bytes for m in shown.timeline if m.operation == operation and m.in_backward) // UNIT


def test_a_formula_read_in_its_place_stays_a_formula() -> None:
    shown = backward(matmul("m", "t"), loop("p", "m"), loop("q", "p", "m"), matmul("b", "q"), outputs=["b"])
    assert kernels(shown) == ["m", "q", "b"]


def test_an_element_read_in_two_places_counts_as_two_reads() -> None:
    """Each step reads what is before it in two places; the third would read eight and is written down."""
    doubling: list[Value] = []
    previous = "m"
    for number in range(4):
        doubling += [shifted(f"s{number}", previous, 2**number), loop(f"p{number}", previous, f"s{number}")]
        previous = f"p{number}"
    shown = backward(matmul("m", "t"), *doubling, matmul("b", previous), outputs=["b"])
    assert kernels(shown) == ["m", "p2", "p3", "b"]


def test_what_a_loop_reads_elsewhere_cannot_be_written_over() -> None:
    in_place = backward(matmul("m", "t"), loop("p", "m"), matmul("b", "p"), outputs=["b"])
    moved = backward(matmul("m", "t"), shifted("s", "m"), loop("p", "s"), matmul("b", "p"), outputs=["b"])
    assert live(in_place, "p") + 1 == live(moved, "p")


def test_a_matmul_that_only_a_sum_reads_runs_where_the_sum_runs_and_holds_its_inputs() -> None:
    """The gradient of a weight that is used twice: the early half waits for the late one."""
    early = [matmul("g", "t"), matmul("early", "g"), matmul("h", "t")]
    shown = backward(*early, matmul("late", "h"), loop("sum", "early", "late", operator=ADD), outputs=["sum"])
    assert "early" not in kernels(shown)
    # t is held by autograd; g waits for the sum; late and the sum itself.
    assert live(shown, "sum") == 4


def test_a_sum_of_something_else_is_a_loop_of_its_own() -> None:
    parts = [matmul("g", "t"), matmul("early", "g"), loop("twice", "early"), matmul("h", "t")]
    shown = backward(*parts, loop("sum", "early", "twice", "h", operator=ADD), outputs=["sum"])
    assert "early" in kernels(shown)


def test_the_parts_of_a_concatenation_live_inside_it() -> None:
    cat = value("cat", "p", "q", kind=Kind.REDUCTION, role=Role.BACKWARD, operator=CAT, nbytes=2 * UNIT)
    parts = [matmul("m", "t"), matmul("n", "t"), loop("p", "m"), loop("q", "n")]
    shown = backward(*parts, cat, matmul("b", "cat"), matmul("c", "p", "b"), outputs=["c"])
    # While c runs: t, b and c, and the whole of the concatenation because p is a part of it.
    assert live(shown, "c") == 5


def test_a_formula_is_written_when_the_matmul_that_reads_it_through_a_view_runs() -> None:
    view = value("v", "p", kind=Kind.VIEW, storage="p", role=Role.BACKWARD, operator="aten.permute.default")
    values = [matmul("m", "t"), matmul("n", "t"), loop("p", "m", "n"), matmul("o", "t"), loop("q", "p", "o")]
    late = backward(*values, matmul("b", "q"), view, matmul("c", "v", "b"), outputs=["c"])
    direct = backward(*values, matmul("b", "q"), matmul("c", "p", "b"), outputs=["c"])
    assert kernels(direct).index("p") < kernels(direct).index("o")
    assert kernels(late).index("p") > kernels(late).index("b")
