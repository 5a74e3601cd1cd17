"""FLOPs agree with torch's own counter, and what has no formula says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from autockpt.cost_models import TensorSpec, work_of
from autockpt.cost_models.device import ARITHMETIC

aten = torch.ops.aten


def spec(*shape: int, dtype: torch.dtype = torch.float32) -> TensorSpec:
    return TensorSpec(shape, str(dtype).removeprefix("torch."), dtype.itemsize)


def empty(*shape: int) -> torch.Tensor:
    return torch.empty(shape, device="meta")


def ours(operator: str, inputs: tuple[torch.Tensor, ...], outputs: tuple[torch.Tensor, ...]) -> float:
    return work_of(operator, specs(inputs), specs(outputs)).matrix_flops


def specs(tensors: tuple[torch.Tensor, ...]) -> tuple[TensorSpec, ...]:
    return tuple(spec(*tensor.shape, dtype=tensor.dtype) for tensor in tensors)


def counted(call: Callable[[], tuple[torch.Tensor, ...]]) -> tuple[tuple[torch.Tensor, ...], int]:
    """What a call returns and the FLOPs that torch counts for it."""
    with FlopCounterMode(display=False) as counter:
        outputs = call()
    return outputs, counter.get_total_flops()


def convolve(
    image: torch.Tensor, weight: torch.Tensor, stride: int, transposed: bool, groups: int
) -> tuple[torch.Tensor, ...]:
    return (aten.convolution(image, weight, None, [stride] * 2, [0, 0], [1, 1], transposed, [0, 0], groups),)


@pytest.mark.parametrize(
    ("operator", "shapes"),
    [
        ("mm", [(3, 5), (5, 7)]),
        ("bmm", [(2, 3, 5), (2, 5, 7)]),
        ("addmm", [(7,), (3, 5), (5, 7)]),
        ("baddbmm", [(2, 3, 7), (2, 3, 5), (2, 5, 7)]),
    ],
)
def test_matrix_products_count_as_torch_counts(operator: str, shapes: list[tuple[int, ...]]) -> None:
    inputs = tuple(empty(*shape) for shape in shapes)
    outputs, flops = counted(lambda: (getattr(aten, operator)(*inputs),))
    assert ours(f"aten.{operator}.default", inputs, outputs) == flops


@pytest.mark.parametrize(
    ("image", "weight", "stride", "transposed", "groups"),
    [
        pytest.param((2, 3, 9, 9), (8, 3, 3, 3), 2, False, 1, id="plain"),
        pytest.param((2, 8, 9, 9), (8, 8, 3, 3), 1, False, 1, id="plain, as many channels out as in"),
        pytest.param((2, 4, 9, 9), (8, 2, 3, 3), 1, False, 2, id="grouped"),
        pytest.param((2, 8, 9, 9), (8, 1, 3, 3), 1, False, 8, id="depthwise"),
        pytest.param((2, 8, 5, 5), (8, 3, 2, 2), 2, True, 1, id="transposed"),
        pytest.param((2, 8, 5, 5), (8, 8, 2, 2), 2, True, 1, id="transposed, as many channels out as in"),
    ],
)
def test_convolutions_count_as_torch_counts(
    image: tuple[int, ...], weight: tuple[int, ...], stride: int, transposed: bool, groups: int
) -> None:
    inputs = (empty(*image), empty(*weight))
    outputs, flops = counted(lambda: convolve(*inputs, stride, transposed, groups))
    assert ours("aten.convolution.default", inputs, outputs) == flops


@pytest.mark.parametrize("wanted", [(True, True), (False, True), (True, False)])
@pytest.mark.parametrize(
    ("weight", "transposed"),
    [
        pytest.param((6, 8, 2, 2), False, id="plain"),
        pytest.param((8, 6, 2, 2), True, id="transposed"),
    ],
)
def test_convolution_backward_counts_the_gradients_that_are_wanted(
    weight: tuple[int, ...], transposed: bool, wanted: tuple[bool, bool]
) -> None:
    given = (empty(2, 8, 4, 4), empty(*weight))
    (image,) = convolve(*given, 2, transposed, 1)
    inputs = (torch.empty_like(image), *given)
    rest = ([0], [2, 2], [0, 0], [1, 1], transposed, [0, 0], 1, [*wanted, False])
    outputs, flops = counted(lambda: aten.convolution_backward(*inputs, *rest))
    made = tuple(output for output in outputs if output is not None)
    assert ours("aten.convolution_backward.default", inputs, made) == flops


@pytest.mark.parametrize("flavour", ["flash_attention_for_cpu", "flash_attention", "efficient_attention"])
def test_attention_counts_as_torch_counts(flavour: str) -> None:
    inputs = (empty(2, 4, 16, 8), empty(2, 4, 24, 8), empty(2, 4, 24, 12))
    out = (empty(2, 4, 16, 12),)
    flops = flop_registry[aten._scaled_dot_product_flash_attention](*inputs, out_val=out)
    assert ours(f"aten._scaled_dot_product_{flavour}.default", inputs, out) == flops


@pytest.mark.parametrize("flavour", ["flash_attention_for_cpu", "flash_attention", "efficient_attention"])
def test_attention_backward_counts_as_torch_counts(flavour: str) -> None:
    query, key, value = empty(2, 4, 16, 8), empty(2, 4, 24, 8), empty(2, 4, 24, 8)
    inputs, outputs = (torch.empty_like(query), query, key, value), (query, key, value)
    flops = flop_registry[aten._scaled_dot_product_flash_attention_backward](*inputs, out_val=outputs)
    assert ours(f"aten._scaled_dot_product_{flavour}_backward.default", inputs, outputs) == flops


def test_matrix_products_move_their_operands_and_their_result() -> None:
    work = work_of("aten.mm.default", (spec(3, 5), spec(5, 7)), (spec(3, 7),))
    assert work.bytes_moved == 4 * (15 + 35 + 21)
    assert not work.estimated


def test_an_unknown_operator_is_priced_by_its_bytes_and_says_so() -> None:
    work = work_of("mine.mystery.default", (spec(10),), (spec(20),))
    assert work.bytes_moved == 4 * 30
    assert work.matrix_flops == 0
    assert work.estimated


def test_an_elementwise_operator_needs_no_formula() -> None:
    work = work_of("aten.add.Tensor", (spec(10), spec(10)), (spec(10),), elementwise=True)
    assert work.elements == 10
    assert not work.estimated


def test_an_exponential_is_dearer_than_a_sum() -> None:
    dear = work_of("aten.exp.default", (spec(10),), (spec(10),))
    cheap = work_of("aten.sum.default", (spec(10),), (spec(),))
    assert ARITHMETIC[dear.arithmetic] > ARITHMETIC[cheap.arithmetic]
    assert not dear.estimated
    assert not cheap.estimated


@pytest.mark.parametrize("operator", ["prims.inductor_random.default", "aten.rand.default", "aten.bernoulli.p"])
def test_a_random_operator_counts_the_numbers_it_draws(operator: str) -> None:
    work = work_of(operator, (spec(),), (spec(4, 25),))
    assert work.random_numbers == 100
    assert work.elements == 0
    assert not work.estimated


def test_dropout_draws_once_for_its_two_outputs() -> None:
    work = work_of("aten.native_dropout.default", (spec(100),), (spec(100), spec(100, dtype=torch.bool)))
    assert work.random_numbers == 100


def test_arithmetic_runs_in_the_narrowest_float() -> None:
    narrow = spec(4, 4, dtype=torch.bfloat16)
    assert work_of("aten.mm.default", (narrow, narrow), (spec(4, 4),)).dtype == "bfloat16"
    assert work_of("aten.mm.default", (spec(4, 4), spec(4, 4)), (spec(4, 4),)).dtype == "float32"


def test_integers_do_not_narrow_arithmetic() -> None:
    indices = spec(4, dtype=torch.int8)
    assert work_of("aten.embedding.default", (spec(9, 4), indices), (spec(4, 4),)).dtype == "float32"
    assert work_of("aten.bitwise_and.Tensor", (indices, indices), (indices,)).dtype == "float32"


def test_nothing_in_and_nothing_out_is_no_work() -> None:
    work = work_of("mine.barrier.default", (), ())
    assert (work.bytes_moved, work.elements) == (0, 0)
