"""The work of higher-order operators is that of their subgraphs; that of others may depend on their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import fx
from torch._higher_order_ops.associative_scan import associative_scan_op
from torch._higher_order_ops.flex_attention import flex_attention_backward
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table, triton_kernel_wrapper_functional
from torch._higher_order_ops.while_loop import while_loop
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.flop_counter import flop_registry, register_flop_formula
from traced import joint_of

from autockpt.cost_models import Work, evaluate
from autockpt.passes.fx.subgraphs import node_work

BYTES = 4


def traced(function: Callable[..., Any], *inputs: torch.Tensor) -> Work:
    """The work of the one higher-order call in a function."""
    module = make_fx(function, tracing_mode="fake")(*inputs)
    return only(node_work(node) for node in module.graph.nodes if is_higher(node))


def is_higher(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.HigherOrderOperator)


def only(works: Iterator[Work | None]) -> Work:
    (work,) = works
    assert work is not None
    return work


def test_a_scan_is_its_step_for_every_element() -> None:
    weight, sequence = torch.randn(8, 8), torch.randn(5, 4, 8)

    def run(sequence: torch.Tensor, weight: torch.Tensor) -> Any:
        return scan(lambda carry, x: (torch.tanh(carry @ weight + x), carry.clone()), sequence[0] * 1.0, sequence)

    work = traced(run, sequence, weight)

    assert work.matrix_flops == 5 * 2 * 4 * 8 * 8
    assert work.arithmetic == "hyperbolic"
    assert not work.estimated


def test_a_balanced_scan_combines_twice_as_often() -> None:
    sequence = torch.randn(6, 4)
    work = traced(lambda x: associative_scan_op(lambda a, b: (a * b,), (x,), ()), sequence)
    assert work.elements == 2 * 6 * 4


def test_of_two_branches_the_more_expensive_counts() -> None:
    weight, x = torch.randn(8, 8), torch.randn(4, 8)

    def run(x: torch.Tensor, weight: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x, w: (x @ w).sin(), lambda x, w: x.cos(), (x, weight))

    assert traced(run, x, weight).matrix_flops == 2 * 4 * 8 * 8


def test_a_while_loop_is_one_iteration_and_an_estimate() -> None:
    def run(x: torch.Tensor) -> Any:
        return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y @ y), (torch.tensor(0), x))

    work = traced(run, torch.randn(4, 4))

    assert work.matrix_flops == 2 * 4**3
    assert work.estimated


def test_a_region_called_twice_is_worth_its_graph_each_time() -> None:
    @torch.compiler.nested_compile_region
    def region(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ weight)

    x, weight = torch.randn(4, 8, requires_grad=True), torch.randn(8, 8, requires_grad=True)
    joint, _, _ = joint_of(lambda x, weight: region(region(x, weight), weight).sum(), x, weight)

    works = [node_work(node) for node in joint.graph.nodes if is_higher(node)]

    product = 2 * 4 * 8 * 8
    assert [work.matrix_flops for work in works if work] == [product, product, 2 * product, 2 * product]
    assert not any(work.estimated for work in works if work)


def attended(score: Callable[..., Any]) -> Work:
    query, key = torch.randn(1, 2, 128, 16), torch.randn(1, 2, 256, 16)
    return traced(lambda q, k: flex_attention(q, k, k, score_mod=score), query, key)


def test_flexible_attention_is_attention_and_its_score_function_for_every_score() -> None:
    scores = 2 * 128 * 256
    plain = attended(lambda score, b, h, q, k: score + q)
    dear = attended(lambda score, b, h, q, k: torch.tanh(score))

    assert plain.family == "attention"
    assert plain.matrix_flops == 2 * scores * (16 + 16)
    assert plain.elements >= scores
    assert dear.arithmetic == "hyperbolic"


def test_the_backward_of_flexible_attention_runs_five_products() -> None:
    graph = fx.Graph()
    tensors = [graph.placeholder(name) for name in ("query", "key", "value", "out", "logsumexp", "gradient")]
    for tensor in tensors:
        tensor.meta["val"] = torch.empty(1, 2, 32, 16, device="meta")
    call = graph.call_function(flex_attention_backward, (*tensors, None, None, None, (), 1.0, {}))
    call.meta["val"] = (tensors[0].meta["val"],) * 3

    work = only(iter([node_work(call)]))

    assert work.family == "attention_backward"
    assert work.matrix_flops == 5 * 2 * (2 * 32 * 32) * 16


def triton_call(kernel: Any) -> fx.Node:
    graph = fx.Graph()
    source, target = graph.placeholder("source"), graph.placeholder("target")
    for tensor in (source, target):
        tensor.meta["val"] = torch.empty(100, device="meta")
    described = {
        "kernel_idx": kernel_side_table.add_kernel(kernel),
        "constant_args_idx": 0,
        "grid": [(1, 1, 1)],
        "tma_descriptor_metadata": {},
        "kwargs": {"x": source, "y": target},
        "tensors_to_clone": ["y"],
    }
    call = graph.call_function(triton_kernel_wrapper_functional, (), described)
    call.meta["val"] = {"y": target.meta["val"]}
    return call


class Kernel:
    """Stands for a compiled Triton kernel, which torch keeps by identity."""


def test_a_triton_kernel_without_a_formula_is_an_estimate_by_its_tensors() -> None:
    work = only(iter([node_work(triton_call(Kernel()), kernel_side_table.id_to_kernel)]))
    assert work.bytes_moved == BYTES * (100 + 100 + 100 + 100)
    assert work.estimated


def test_a_triton_kernel_with_a_registered_formula_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel()
    monkeypatch.setitem(flop_registry, kernel, lambda *args, out_val, **kwargs: 7 * kwargs["kwargs"]["x"].numel())
    work = only(iter([node_work(triton_call(kernel), kernel_side_table.id_to_kernel)]))
    assert work.matrix_flops == 700
    assert not work.estimated


@torch.library.custom_op("autockpt_inner::powers", mutates_args=())
def powers(x: torch.Tensor, count: int) -> torch.Tensor:
    return torch.linalg.matrix_power(x, count)


@powers.register_fake
def _(x: torch.Tensor, count: int) -> torch.Tensor:
    return torch.empty_like(x)


def test_a_users_formula_sees_the_arguments_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    module = make_fx(lambda x: powers(x, 5), tracing_mode="fake")(torch.randn(4, 4))
    (call,) = module.graph.find_nodes(op="call_function", target=torch.ops.autockpt_inner.powers.default)
    assert node_work(call) is None

    def count(x: torch.Tensor, count: int, *, out_val: Any) -> int:
        return 2 * count * x.shape[0] ** 3

    monkeypatch.setitem(flop_registry, torch.ops.autockpt_inner.powers, count)
    assert only(iter([node_work(call)])).matrix_flops == 2 * 5 * 4**3


def test_causal_attention_is_recognized_by_its_argument() -> None:
    query = torch.randn(1, 2, 32, 16)

    def attend(query: torch.Tensor, *, causal: bool) -> Any:
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, query, query, 0.0, causal)

    def flops(causal: bool) -> float:
        module = make_fx(partial(attend, causal=causal), tracing_mode="fake")(query)
        (call,) = (node for node in module.graph.nodes if "attention" in str(node.target))
        return only(iter([node_work(call)])).matrix_flops

    assert flops(True) == flops(False) * 33 / 64


def test_a_call_that_its_shapes_determine_has_no_work_of_its_own() -> None:
    module = make_fx(torch.mm, tracing_mode="fake")(torch.randn(2, 3), torch.randn(3, 4))
    assert [node_work(node) for node in module.graph.nodes] == [None] * len(module.graph.nodes)


def test_a_formula_that_raises_leaves_an_estimate() -> None:
    @torch.library.custom_op("autockpt_test::raises", mutates_args=())
    def raises(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @raises.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    @register_flop_formula(torch.ops.autockpt_test.raises)
    def formula(*args: Any, **kwargs: Any) -> int:
        raise ValueError("not today")

    module = make_fx(lambda x: torch.ops.autockpt_test.raises(x), tracing_mode="fake")(torch.randn(4, 4))
    (node,) = (node for node in module.graph.nodes if node.op == "call_function")
    work = node_work(node)
    assert work is not None
    assert work.estimated
    assert work.bytes_moved == 2 * 4 * 4 * 4


def test_a_formula_that_compares_sizes_leaves_no_guard() -> None:
    @torch.library.custom_op("autockpt_test::counts", mutates_args=())
    def counts(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @counts.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    @register_flop_formula(torch.ops.autockpt_test.counts)
    def formula(shape: Any, *args: Any, **kwargs: Any) -> int:
        return int(shape[0]) * 7

    module = make_fx(lambda x: torch.ops.autockpt_test.counts(x), tracing_mode="symbolic")(torch.randn(5, 4))
    (node,) = (node for node in module.graph.nodes if node.target is torch.ops.autockpt_test.counts.default)
    environment = node.meta["val"].fake_mode.shape_env
    before = len(environment.guards)
    work = node_work(node)
    assert work is not None
    assert work.matrix_flops == 5 * 7
    assert len(environment.guards) == before


def branches(*inputs: torch.Tensor) -> Work:
    """A conditional with a matmul of the first input's size in one branch and of the second's in the other."""

    def run(x: torch.Tensor, y: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x, y: (x @ x).sum(), lambda x, y: (y @ y).sum(), (x, y))

    module = make_fx(run, tracing_mode="symbolic")(*inputs)
    return only(node_work(node) for node in module.graph.nodes if is_higher(node))


def test_a_formula_that_has_to_compare_symbols_is_evaluated_at_their_hints() -> None:
    work = branches(torch.randn(4, 4), torch.randn(6, 6))
    assert work.matrix_flops == 2 * 6**3
    assert not work.estimated


def test_a_subgraph_of_symbolic_sizes_has_symbolic_work() -> None:
    def run(sequence: torch.Tensor, weight: torch.Tensor) -> Any:
        return scan(lambda carry, x: (torch.tanh(carry @ weight + x), carry.clone()), sequence[0] * 1.0, sequence)

    module = make_fx(run, tracing_mode="symbolic")(torch.randn(5, 4, 8), torch.randn(8, 8))
    work = only(node_work(node) for node in module.graph.nodes if is_higher(node))
    symbols = work.matrix_flops.free_symbols  # type: ignore[attr-defined]  # an expression
    environment = next(iter(module.graph.nodes)).meta["val"].fake_mode.shape_env
    hints = {symbol: environment.optimization_hint(symbol) for symbol in symbols}
    assert evaluate(work, hints).matrix_flops == 5 * 2 * 4 * 8 * 8
