"""Dynamic sizes are read as expressions, become numbers at their hints, and leave no guard behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sympy
import torch
from torch import Tensor, fx, nn
from torch._dynamo import config as dynamo_config
from torch.nn import functional as F
from traced import joint_of, read_joint

from autockpt.cost_models import TensorSpec, evaluate, load_profile
from autockpt.cost_models.memory import allocated_bytes
from autockpt.inductor.aot import mutated_inputs
from autockpt.passes.fx.read import read
from autockpt.passes.fx.sizes import AllocatedBytes
from autockpt.passes.graph.fingerprint import outline
from autockpt.passes.graph.hints import at_hints
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.value import Kind, Role, Value
from autockpt.passes.planners.decide import decide
from autockpt.passes.problem.plan import Budget, Setup
from autockpt.passes.problem.price import work_of_value

BATCH, WIDTH = 24, 16


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x))
        heads = x.view(-1, 2, 4, WIDTH // 4)
        return F.scaled_dot_product_attention(heads, heads, heads).pow(3).sum()


def traced(*, dynamic: bool) -> tuple[fx.GraphModule, int, list[int]]:
    torch._dynamo.reset()
    return joint_of(Network(), torch.randn(BATCH, WIDTH), dynamic=dynamic)


def symbolic_of(joint: tuple[fx.GraphModule, int, list[int]]) -> JointGraph:
    return read(*joint, mutated_inputs(joint[0]))


@pytest.fixture(scope="module")
def dynamic() -> tuple[fx.GraphModule, int, list[int]]:
    return traced(dynamic=True)


def only(graph: JointGraph, operator: str, number: int = 0) -> Value:
    return [v for v in graph.values if v.operator == operator and v.role is Role.FORWARD][number]


def expressions(graph: JointGraph) -> Iterator[object]:
    """Everything in sizes, bytes and work that is not a number of Python's."""
    for value in graph.values:
        yield from (size for size in (value.spec.shape if value.spec else ()) if type(size) is not int)
        yield from (amount for amount in (value.work.amounts if value.work else ()) if isinstance(amount, sympy.Basic))
    yield from (size for size in graph.bytes.values() if type(size) is not int)


def test_a_dynamic_size_is_a_symbol_in_shapes_bytes_and_work(dynamic: tuple[fx.GraphModule, int, list[int]]) -> None:
    graph = symbolic_of(dynamic)
    (batch,) = graph.hints

    tanh, matmul = only(graph, "aten.tanh.default"), only(graph, "aten.addmm.default")
    assert tanh.spec is not None
    assert tanh.spec.shape == (batch, WIDTH)
    assert graph.bytes[tanh.name] == 4 * WIDTH * batch
    assert work_of_value(graph, matmul).matrix_flops == 2 * WIDTH * WIDTH * batch
    attention = next(v for v in graph.values if "attention" in v.operator and v.role is Role.FORWARD)
    assert attention.work is not None
    assert attention.work.matrix_flops.free_symbols == {batch}  # type: ignore[attr-defined]  # an expression
    assert graph.hints == {batch: BATCH}


def test_at_its_hints_a_dynamic_graph_has_the_numbers_of_its_trace(
    dynamic: tuple[fx.GraphModule, int, list[int]],
) -> None:
    graph = symbolic_of(dynamic)
    numbers = at_hints(graph)

    assert not list(expressions(numbers))
    assert numbers.symbolic is graph
    nodes = {node.name: node.meta.get("val") for node in dynamic[0].graph.nodes}
    for value in numbers.values:
        if value.spec is not None and isinstance(nodes[value.name], Tensor):
            assert value.spec.shape == tuple(map(hint, nodes[value.name].shape))
        if value.owns_bytes:
            assert numbers.bytes[value.name] == hint(nodes[value.name].untyped_storage().nbytes())
        if value.kind.runs:
            formula = work_of_value(graph, graph.by_name[value.name])
            assert evaluate(formula, graph.hints) == evaluate(work_of_value(numbers, value), {})


def hint(size: int | torch.SymInt) -> int:
    return size if isinstance(size, int) else int(size.node.hint)


def test_a_dynamic_graph_is_planned_as_the_static_one() -> None:
    setup = Setup(Budget(fraction=0.3), load_profile("cpu"))
    one, other = (decide(read_joint(*traced(dynamic=dynamic)), setup) for dynamic in (True, False))
    assert one.plan.saved == other.plan.saved
    assert one.forecast.peak_bytes == other.forecast.peak_bytes
    assert one.forecast.recompute_seconds == other.forecast.recompute_seconds


def test_the_outline_of_a_dynamic_graph_has_numbers(dynamic: tuple[fx.GraphModule, int, list[int]]) -> None:
    assert any(f"float32[{BATCH},{WIDTH}]" in line for line in outline(read_joint(*dynamic)).values)


def test_a_static_graph_has_no_expressions_and_no_second_copy() -> None:
    graph = symbolic_of(traced(dynamic=False))
    assert not list(expressions(graph))
    assert graph.hints == {}
    assert at_hints(graph) is graph


def test_reading_and_evaluating_leave_no_guard() -> None:
    joint = traced(dynamic=True)
    symbol = next(n.meta["val"] for n in joint[0].graph.nodes if isinstance(n.meta.get("val"), torch.SymInt))
    environment = symbol.node.shape_env
    before = list(environment.guards)
    at_hints(symbolic_of(joint))
    assert environment.guards == before


def test_a_size_that_depends_on_data_is_assumed_to_be_its_bound() -> None:
    def model(x: Tensor, w: Tensor) -> Tensor:
        return (x[x > 0].unsqueeze(1) * w).sum()

    torch._dynamo.reset()
    with dynamo_config.patch(capture_dynamic_output_shape_ops=True):
        graph = symbolic_of(joint_of(model, torch.randn(10), torch.randn(5, requires_grad=True)))
    assert list(graph.hints.values()) == [10]
    product = only(graph, "aten.mul.Tensor")
    assert at_hints(graph).bytes_of(product.name) == 10 * 5 * 4


def test_a_size_that_depends_on_data_without_a_bound_has_an_assumed_number() -> None:
    def model(count: Tensor, w: Tensor) -> Tensor:
        rows = count.item()
        torch._check(rows >= 2)  # type: ignore[operator]  # an integer
        return (torch.ones(rows, 1) * w).sum()

    torch._dynamo.reset()
    with dynamo_config.patch(capture_scalar_outputs=True):
        graph = symbolic_of(joint_of(model, torch.tensor(7), torch.randn(5, requires_grad=True)))
    assert list(graph.hints.values()) == [4096]
    product = only(graph, "aten.mul.Tensor")
    assert at_hints(graph).bytes_of(product.name) == 4096 * 5 * 4


def test_allocations_of_a_gpu_are_rounded_up_at_their_hints() -> None:
    size = sympy.Symbol("s0", integer=True, positive=True)
    rounded = AllocatedBytes(4 * size)
    assert rounded.free_symbols == {size}
    assert rounded.xreplace({size: sympy.Integer(1000)}) == allocated_bytes(4000) == 4096


def test_a_graph_of_expressions_evaluates_a_shape_only_with_a_hint_for_each_symbol() -> None:
    size, other = sympy.symbols("s0 s1", integer=True, positive=True)
    value = Value("x", "placeholder", Role.INPUT, Kind.GRAPH_INPUT, spec=TensorSpec((size, other), "float32", 4))
    with pytest.raises(ValueError, match="no hint for the size s1"):
        at_hints(JointGraph((value,), {}, (), (), hints={size: 3}))
