"""Real tensors have the layouts of the fake ones that they replace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx

from autockpt.inductor.runtime.real_arguments import Layout, NotRunnable, runnable_call

CPU = torch.device("cpu")


def nodes(function: Callable[..., Any], *inputs: Tensor) -> list[fx.Node]:
    gm = make_fx(function, tracing_mode="fake")(*inputs)
    return [node for node in gm.graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.complex64, torch.int64])
@pytest.mark.parametrize(
    ("size", "stride"),
    [((3, 5), (5, 1)), ((3, 5), (1, 3)), ((3, 5), (0, 1)), ((), ()), ((0, 4), (4, 1)), ((100, 100), (128, 1))],
)
def test_a_real_tensor_has_the_size_the_strides_and_the_type(
    size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype
) -> None:
    tensor = Layout(0, size, stride, dtype, CPU).real()
    assert (tuple(tensor.shape), tensor.stride(), tensor.dtype) == (size, stride, dtype)


def test_numbers_are_moderate_and_integers_are_valid_indices() -> None:
    numbers = Layout(0, (300, 100), (100, 1), torch.float32, CPU).real()
    assert 0.9 < numbers.std() < 1.1
    assert numbers.abs().max() < 10
    assert not Layout(0, (7,), (1,), torch.int64, CPU).real().any()


def test_drawing_numbers_does_not_change_the_random_state() -> None:
    before = torch.get_rng_state()
    Layout(0, (300, 100), (100, 1), torch.float32, CPU).real()
    assert torch.equal(torch.get_rng_state(), before)


def test_equal_calls_have_one_key_and_another_shape_stride_type_or_number_has_its_own() -> None:
    x, y = torch.randn(4, 4), torch.randn(4, 4)

    def calls(x: Tensor, y: Tensor, z: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        return x + y, y + x, x + x, x + y.t(), x + z, x + w, torch.add(x, y, alpha=2)

    found = [runnable_call(node) for node in nodes(calls, x, y, torch.randn(2, 4, 4), x.double())]
    first, second, *others = [call.key for call in found if call.target is torch.ops.aten.add.Tensor]
    assert first == second
    assert len({first, *others}) == 1 + len(others) == 6


def test_a_tensor_that_is_passed_twice_is_one_tensor() -> None:
    (node,) = nodes(lambda x: x * x, torch.randn(8))
    call = runnable_call(node)
    (layout,) = call.layouts
    assert call.nbytes == 2 * layout.nbytes == 64
    one, other = call.real().args  # type: ignore[attr-defined]  # a partial
    assert one is other


def test_lists_of_tensors_and_keywords_are_real_too() -> None:
    cat, full = nodes(lambda x, y: (torch.cat([x, y], 1), torch.full((3,), 2.0)), torch.randn(2, 2), torch.randn(2, 5))
    made = runnable_call(cat).real()()
    assert isinstance(made, Tensor)
    assert made.shape == (2, 7)
    assert torch.equal(runnable_call(full).real()(), torch.full((3,), 2.0))  # type: ignore[arg-type]  # one tensor


def test_a_sparse_argument_is_not_runnable() -> None:
    gm = make_fx(lambda x: x * 2, tracing_mode="fake")(torch.randn(3))
    (node,) = (node for node in gm.graph.nodes if node.op == "call_function")
    node.args[0].meta["val"] = torch.eye(3).to_sparse()
    with pytest.raises(NotRunnable, match="sparse"):
        runnable_call(node)
