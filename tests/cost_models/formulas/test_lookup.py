"""FLOPs agree with torch's flop counter, and work without a formula is marked as estimated."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, flop_registry, register_flop_formula

from autockpt.cost_models import TensorSpec, work_of
from autockpt.cost_models.device import ARITHMETIC, FAMILIES

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
def test_convolution_backward_counts_the_gradients_that_are_requested(
    weight: tuple[int, ...], transposed: bool, wanted: tuple[bool, bool]
) -> None:
    operands = (empty(2, 8, 4, 4), empty(*weight))
    (image,) = convolve(*operands, 2, transposed, 1)
    inputs = (torch.empty_like(image), *operands)
    rest = ([0], [2, 2], [0, 0], [1, 1], transposed, [0, 0], 1, [*wanted, False])
    outputs, flops = counted(lambda: aten.convolution_backward(*inputs, *rest))
    made = tuple(output for output in outputs if output is not None)
    assert ours("aten.convolution_backward.default", inputs, made) == flops


FLAVOURS = [
    "flash_attention_for_cpu",
    "flash_attention",
    "efficient_attention",
    "cudnn_attention",
    "fused_attention_overrideable",
]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_attention_counts_as_torch_counts(flavour: str) -> None:
    inputs = (empty(2, 4, 16, 8), empty(2, 4, 24, 8), empty(2, 4, 24, 12))
    out = (empty(2, 4, 16, 12),)
    flops = flop_registry[aten._scaled_dot_product_flash_attention](*inputs, out_val=out)
    assert ours(f"aten._scaled_dot_product_{flavour}.default", inputs, out) == flops


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_attention_backward_counts_as_torch_counts(flavour: str) -> None:
    query, key, value = empty(2, 4, 16, 8), empty(2, 4, 24, 8), empty(2, 4, 24, 12)
    inputs, outputs = (empty(2, 4, 16, 12), query, key, value), (query, key, value)
    flops = flop_registry[aten._scaled_dot_product_flash_attention_backward](*inputs, out_val=outputs)
    assert ours(f"aten._scaled_dot_product_{flavour}_backward.default", inputs, outputs) == flops


@pytest.mark.parametrize("flavour", ["flash", "efficient"])
def test_attention_with_heads_after_length_counts_the_same(flavour: str) -> None:
    heads_first = (spec(2, 4, 16, 8), spec(2, 4, 24, 8), spec(2, 4, 24, 8))
    length_first = (spec(2, 16, 4, 8), spec(2, 24, 4, 8), spec(2, 24, 4, 8))
    one = work_of("aten._scaled_dot_product_flash_attention.default", heads_first, (spec(2, 4, 16, 8),))
    other = work_of(f"aten._{flavour}_attention_forward.default", length_first, (spec(2, 16, 4, 8),))
    assert one.matrix_flops == other.matrix_flops


@pytest.mark.parametrize(("length", "reach"), [(6, 6), (6, 9), (9, 6)])
def test_causal_attention_counts_the_scores_below_the_diagonal(length: int, reach: int) -> None:
    """torch's flop counter ignores the mask; this is the one place where ours is lower on purpose."""
    tensors = (spec(2, 4, length, 8), spec(2, 4, reach, 8), spec(2, 4, reach, 8))
    operator = "aten._scaled_dot_product_flash_attention_for_cpu.default"
    seen = torch.ones(length, reach).tril().sum() / (length * reach)
    whole = work_of(operator, tensors, tensors[:1])
    causal = work_of(operator, tensors, tensors[:1], arguments={"is_causal": True, "dropout_p": 0.0})
    assert causal.matrix_flops == pytest.approx(float(seen) * whole.matrix_flops)
    assert causal.random_numbers == 0


def test_the_backward_of_a_grouped_convolution_is_the_sum_over_its_groups() -> None:
    """Torch counts the weight's gradient as if every channel met every other; kernels do not compute that."""
    images, weight = spec(2, 8, 9, 9), spec(8, 2, 3, 3)
    gradient = spec(2, 8, 7, 7)
    grouped = work_of("aten.convolution_backward.default", (gradient, images, weight), (images, weight))
    operands = (spec(2, 2, 7, 7), spec(2, 2, 9, 9), spec(2, 2, 3, 3))
    one = work_of("aten.convolution_backward.default", operands, operands[1:])
    assert grouped.matrix_flops == 4 * one.matrix_flops


@pytest.mark.parametrize(
    ("operator", "inputs", "outputs", "family"),
    [
        ("mm", [(3, 5), (5, 7)], [(3, 7)], "matmul"),
        ("addmm", [(7,), (3, 5), (5, 7)], [(3, 7)], "matmul"),
        ("bmm", [(2, 3, 5), (2, 5, 7)], [(2, 3, 7)], "batched_matmul"),
        ("_grouped_mm", [(12, 5), (3, 5, 7), (3,)], [(12, 7)], "batched_matmul"),
        ("convolution", [(2, 4, 9, 9), (8, 2, 3, 3)], [(2, 8, 7, 7)], "convolution"),
        ("convolution", [(2, 8, 9, 9), (8, 1, 3, 3)], [(2, 8, 7, 7)], "depthwise"),
        ("convolution", [(2, 1, 9, 9), (8, 1, 3, 3)], [(2, 8, 7, 7)], "convolution"),
        (
            "convolution_backward",
            [(2, 8, 7, 7), (2, 8, 9, 9), (8, 1, 3, 3)],
            [(2, 8, 9, 9), (8, 1, 3, 3)],
            "depthwise_backward",
        ),
        ("_scaled_dot_product_cudnn_attention", [(2, 4, 6, 8)] * 3, [(2, 4, 6, 8)], "attention"),
        ("_scaled_dot_product_cudnn_attention_backward", [(2, 4, 6, 8)] * 4, [(2, 4, 6, 8)] * 3, "attention_backward"),
    ],
)
def test_matrix_work_belongs_to_the_family_of_its_kernels(
    operator: str, inputs: list[tuple[int, ...]], outputs: list[tuple[int, ...]], family: str
) -> None:
    work = work_of(f"aten.{operator}.default", tuple(spec(*s) for s in inputs), tuple(spec(*s) for s in outputs))
    assert work.family == family
    assert family in FAMILIES
    assert work.matrix_flops > 0


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        pytest.param((12, 5), (3, 5, 7), (12, 7), id="rows are split"),
        pytest.param((3, 4, 5), (5, 21), (4, 21), id="columns are split"),
        pytest.param((4, 15), (15, 7), (3, 4, 7), id="the inner dimension is split"),
        pytest.param((3, 4, 5), (3, 5, 7), (3, 4, 7), id="a batch"),
    ],
)
def test_a_grouped_product_is_the_sum_of_its_groups(
    left: tuple[int, ...], right: tuple[int, ...], result: tuple[int, ...]
) -> None:
    """Each example is three groups of 4 x 5 x 7."""
    offsets = spec(3, dtype=torch.int32)
    work = work_of("aten._grouped_mm.default", (spec(*left), spec(*right), offsets), (spec(*result),))
    assert work.matrix_flops == 3 * 2 * 4 * 5 * 7


def test_integer_products_run_at_the_rate_of_integers() -> None:
    small = spec(4, 4, dtype=torch.int8)
    assert work_of("aten._int_mm.default", (small, small), (spec(4, 4, dtype=torch.int32),)).dtype == "int8"


def test_an_embedding_reads_the_rows_it_picks_and_not_the_table() -> None:
    table, indices, rows = spec(50_000, 64), spec(2, 8, dtype=torch.int64), spec(2, 8, 64)
    work = work_of("aten.embedding.default", (table, indices), (rows,))
    assert work.bytes_moved == 2 * rows.nbytes + indices.nbytes
    assert work.arithmetic == "gather"


def test_the_backward_of_an_embedding_writes_the_whole_table() -> None:
    gradient, indices, table = spec(2, 8, 64), spec(2, 8, dtype=torch.int64), spec(50_000, 64)
    work = work_of("aten.embedding_dense_backward.default", (gradient, indices), (table,))
    assert work.bytes_moved == table.nbytes + indices.nbytes + 3 * gradient.nbytes
    assert work.elements == gradient.numel


def test_a_scatter_copies_its_base_and_works_on_what_it_touches() -> None:
    base, index, updates = spec(1000), spec(10, dtype=torch.int64), spec(10)
    work = work_of("aten.scatter_add.default", (base, index, updates), (base,))
    assert work.bytes_moved == 2 * base.nbytes + index.nbytes + 3 * updates.nbytes
    assert (work.elements, work.arithmetic) == (10, "scatter")


@pytest.mark.parametrize("operator", ["aten.view.default", "aten.permute.default", "<built-in function getitem>"])
def test_a_view_has_no_work(operator: str) -> None:
    work = work_of(operator, (spec(4, 25),), (spec(100),))
    assert (work.elements, work.bytes_moved) == (0, 0)
    assert not work.estimated


def test_an_operator_that_takes_tensors_and_returns_nothing_is_not_free() -> None:
    with torch.library._scoped_library("autockpt_formulas", "DEF") as library:
        library.define("send(Tensor x) -> ()")
        work = work_of("autockpt_formulas.send.default", (spec(10),), ())
    assert work.bytes_moved == 40
    assert work.estimated


def test_an_in_place_operator_has_the_work_of_its_out_of_place_one() -> None:
    tensors = (spec(10), spec(10))
    assert work_of("aten.div_.Tensor", tensors, tensors[:1]) == work_of("aten.div.Tensor", tensors, tensors[:1])


def test_a_rule_called_with_unexpected_operands_gives_an_estimate() -> None:
    work = work_of("aten.bmm.default", (), (spec(10),))
    assert work.estimated
    assert work.bytes_moved == 40


def test_matrix_products_move_their_operands_and_their_result() -> None:
    work = work_of("aten.mm.default", (spec(3, 5), spec(5, 7)), (spec(3, 7),))
    assert work.bytes_moved == 4 * (15 + 35 + 21)
    assert not work.estimated


def test_an_unknown_operator_is_estimated_from_its_bytes() -> None:
    work = work_of("mine.mystery.default", (spec(10),), (spec(20),))
    assert work.bytes_moved == 4 * 30
    assert work.matrix_flops == 0
    assert work.estimated


def test_a_formula_that_the_user_registered_is_used() -> None:
    with torch.library._scoped_library("autockpt_formulas", "DEF") as library:
        library.define("blend(Tensor x, Tensor y) -> Tensor")
        before = work_of("autockpt_formulas.blend.default", (spec(3, 5), spec(5, 7)), (spec(3, 7),))
        packet = torch.ops.autockpt_formulas.blend
        try:
            register_flop_formula(packet)(lambda x, y, *, out_shape: 1000 * x[0] * y[1])
            after = work_of("autockpt_formulas.blend.default", (spec(3, 5), spec(5, 7)), (spec(3, 7),))
        finally:
            flop_registry.pop(packet, None)

    assert (before.matrix_flops, before.estimated) == (0, True)
    assert (after.matrix_flops, after.estimated) == (21_000, False)
    assert after.bytes_moved == before.bytes_moved


def test_an_elementwise_operator_needs_no_formula() -> None:
    work = work_of("aten.add.Tensor", (spec(10), spec(10)), (spec(10),), elementwise=True)
    assert work.elements == 10
    assert not work.estimated


def test_an_exponential_costs_more_than_a_sum() -> None:
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


@pytest.mark.parametrize(
    ("exponent", "kind"), [(2, "cheap"), (3.0, "cheap"), (-1, "divide"), (0.5, "divide"), (0.7, "power")]
)
def test_a_power_costs_what_inductor_lowers_it_to(exponent: float, kind: str) -> None:
    square = TensorSpec((8, 8), "float32", 4)
    work = work_of("aten.pow.Tensor_Scalar", (square,), (square,), arguments={"exponent": exponent})
    assert work.arithmetic == kind
