"""Which values are realized and when: the rules of Inductor's lowering, on graphs that can be counted on paper."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from graphs import UNIT, forecast, joint, problem, schedule, value

from autockpt.cost_models import TensorSpec
from autockpt.passes.forecast.result import Forecast
from autockpt.passes.graph.order import traced_order
from autockpt.passes.graph.value import Kind, Role, Value
from autockpt.passes.problem.plan import InductorRules, Lowering

OLDEST = InductorRules()
ADD, MUL, CAT = "aten.add.Tensor", "aten.mul.Tensor", "aten.cat.default"


def loop(name: str, *inputs: str, operator: str = MUL, index_map: str = "", nbytes: int = UNIT) -> Value:
    found = value(name, *inputs, kind=Kind.POINTWISE, role=Role.BACKWARD, operator=operator, nbytes=nbytes)
    return replace(found, index_map=index_map)


def matmul(name: str, *inputs: str, nbytes: int = UNIT) -> Value:
    return value(name, *inputs, role=Role.BACKWARD, nbytes=nbytes)


def shifted(name: str, base: str, by: int = 1) -> Value:
    found = value(name, base, kind=Kind.VIEW, storage=base, role=Role.BACKWARD, operator="aten.slice.Tensor")
    return replace(found, index_map=f"aten.slice 0 {by}")


def backward(*values: Value, outputs: Iterable[str], rules: InductorRules = OLDEST) -> Forecast:
    """The forecast of a step whose backward is these values; `t`, of ten units, is what they start from."""
    start = [
        value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT, nbytes=1),
        value("loss", "x", nbytes=1),
        value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT, nbytes=UNIT),
    ]
    graph = joint([*start, *values], ["loss"], outputs)
    posed = replace(problem(graph, lowering=Lowering.INDUCTOR), rules=rules)
    return forecast(posed, schedule(graph, (), traced_order(graph)))


def kernels(shown: Forecast) -> list[str]:
    return [moment.operation for moment in shown.timeline if moment.in_backward]


def live(shown: Forecast, operation: str) -> int:
    """Whole units of bytes while this kernel runs; loss and input are a byte each."""
    return next(m.live_bytes for m in shown.timeline if m.operation == operation and m.in_backward) // UNIT


def test_a_pointwise_value_read_element_to_element_stays_unrealized() -> None:
    shown = backward(matmul("m", "t"), loop("p", "m"), loop("q", "p", "m"), matmul("b", "q"), outputs=["b"])
    assert kernels(shown) == ["m", "q", "b"]


def test_a_large_value_with_many_readers_is_realized_from_torch_2_14_on() -> None:
    """A chain of 48 loops over one matmul is an expression of 49; fifty are too large in any release."""
    length = 48
    chain = [loop("p0", "m"), *(loop(f"p{n}", f"p{n - 1}") for n in range(1, length))]
    readers = [matmul(f"b{n}", f"r{n}") for n in range(6)]
    loops = [loop(f"r{n}", f"p{length - 1}", f"o{n}") for n in range(6)]
    others = [matmul(f"o{n}", "t") for n in range(6)]
    values = [matmul("m", "t"), *others, *chain, *loops, *readers]
    outputs = [reader.name for reader in readers]
    last = f"p{length - 1}"
    assert last not in kernels(backward(*values, outputs=outputs))
    newer = InductorRules(max_operations_if_read_often=48)
    assert last in kernels(backward(*values, outputs=outputs, rules=newer))
    # Five readers are not many.
    fewer = [v for v in values if v.name not in ("r5", "b5", "o5")]
    assert last not in kernels(backward(*fewer, outputs=outputs[:5], rules=newer))


def test_an_element_read_through_two_index_maps_counts_as_two_reads() -> None:
    """Each step reads the one before through two index maps; the third would have eight reads and is realized."""
    doubling: list[Value] = []
    previous = "m"
    for number in range(4):
        doubling += [shifted(f"s{number}", previous, 2**number), loop(f"p{number}", previous, f"s{number}")]
        previous = f"p{number}"
    shown = backward(matmul("m", "t"), *doubling, matmul("b", previous), outputs=["b"])
    assert kernels(shown) == ["m", "p2", "p3", "b"]


def test_a_buffer_read_through_an_index_map_is_not_written_in_place() -> None:
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


def test_a_matmul_with_another_reader_is_not_merged_into_a_sum() -> None:
    parts = [matmul("g", "t"), matmul("early", "g"), loop("twice", "early"), matmul("h", "t")]
    shown = backward(*parts, loop("sum", "early", "twice", "h", operator=ADD), outputs=["sum"])
    assert "early" in kernels(shown)


def test_the_parts_of_a_concatenation_live_inside_it() -> None:
    cat = value("cat", "p", "q", kind=Kind.REDUCTION, role=Role.BACKWARD, operator=CAT, nbytes=2 * UNIT)
    parts = [matmul("m", "t"), matmul("n", "t"), loop("p", "m"), loop("q", "n")]
    shown = backward(*parts, cat, matmul("b", "cat"), matmul("c", "p", "b"), outputs=["c"])
    # While c runs: t, b and c, and the whole of the concatenation because p is a part of it.
    assert live(shown, "c") == 5


def test_an_unrealized_value_is_realized_when_a_matmul_reads_it_through_a_view() -> None:
    view = value("v", "p", kind=Kind.VIEW, storage="p", role=Role.BACKWARD, operator="aten.permute.default")
    values = [matmul("m", "t"), matmul("n", "t"), loop("p", "m", "n"), matmul("o", "t"), loop("q", "p", "o")]
    late = backward(*values, matmul("b", "q"), view, matmul("c", "v", "b"), outputs=["c"])
    direct = backward(*values, matmul("b", "q"), matmul("c", "p", "b"), outputs=["c"])
    assert kernels(direct).index("p") < kernels(direct).index("o")
    assert kernels(late).index("p") > kernels(late).index("b")


def test_a_value_whose_only_user_is_a_view_is_realized_where_the_view_is() -> None:
    """Inductor counts users node by node: the value has one, its view has two."""
    view = value("v", "p", kind=Kind.VIEW, storage="p", role=Role.BACKWARD, operator="aten.view.default")
    heavy = [matmul("m", "t"), loop("p", "m", operator="aten.exp.default"), matmul("o", "t")]
    readers = [loop("q", "o"), loop("r", "v", "q"), matmul("c", "r"), loop("s", "v", "c"), matmul("b", "s")]
    early = kernels(backward(heavy[0], heavy[1], view, heavy[2], *readers, outputs=["b"]))
    late = kernels(backward(*heavy, view, *readers, outputs=["b"]))
    assert early.index("p") < early.index("o")
    assert "p" not in late[: late.index("o")]
    assert "p" in late


def test_gathered_values_are_copied_for_a_convolutions_backward_where_that_sets_no_layout() -> None:
    """`g`, taken by index from an activation, is an image that the backward of a convolution reads."""
    image = TensorSpec((1, 10, 10, 10), "float32", 1)
    gathered = replace(loop("g", "m", operator="aten.index.Tensor"), spec=image)
    gradient = value("c", "t", "g", role=Role.BACKWARD, operator="aten.convolution_backward.default")
    values = [matmul("m", "t"), gathered, gradient]
    assert kernels(backward(*values, outputs=["c"])) == ["m", "g", "c", "c"]
    newer = InductorRules(backward_sets_layout=True)
    assert kernels(backward(*values, outputs=["c"], rules=newer)) == ["m", "g", "c"]
