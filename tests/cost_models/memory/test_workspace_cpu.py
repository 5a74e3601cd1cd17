"""Scratch is what the real kernels allocate and free again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from autockpt.cost_models import TensorSpec, workspace_bytes
from autockpt.measure.peak import measure_peak

FLASH = "aten._scaled_dot_product_flash_attention_for_cpu"
SHAPE = (8, 4, 256, 64)
SLACK_BYTES = 64 * 2**10

flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
flash_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


def scratch(operator: str, tensors: tuple[torch.Tensor, ...], threads: int, heads_merged: bool = True) -> int:
    specs = (
        TensorSpec(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), tensor.itemsize) for tensor in tensors
    )
    return workspace_bytes(operator, tuple(specs), threads, heads_merged=heads_merged)


def measured_scratch(call: Callable[[], tuple[torch.Tensor, ...]]) -> int:
    """The peak of a call above what it returns."""
    saved: list[torch.Tensor] = []
    peak = measure_peak(lambda: saved.extend(call()), torch.device("cpu"))
    return peak - sum(tensor.nbytes for tensor in saved)


def merged_heads(tensor: torch.Tensor) -> torch.Tensor:
    """Laid out as the gradient that arrives where a model joins its heads after attention."""
    return tensor.transpose(1, 2).contiguous().transpose(1, 2)


@pytest.mark.parametrize("operator", [FLASH, f"{FLASH}_backward"])
def test_attention_scratch_is_per_thread(operator: str) -> None:
    operands = tuple(torch.empty(SHAPE, device="meta") for _ in range(6))
    one = scratch(f"{operator}.default", operands, threads=1)
    assert one > 0
    assert scratch(f"{operator}.default", operands, threads=6) == 6 * one


@pytest.mark.parametrize("length", [100, 256, 1024])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_scratch_is_what_the_kernel_allocates(length: int, dtype: torch.dtype) -> None:
    operands = tuple(torch.randn(2, 4, length, 64, dtype=dtype) for _ in range(3))
    expected = scratch(f"{FLASH}.default", operands, torch.get_num_threads())
    assert abs(measured_scratch(lambda: flash(*operands)) - expected) <= SLACK_BYTES


@pytest.mark.parametrize("shape", [SHAPE, (2, 4, 100, 64), (2, 2, 1024, 64)])
def test_attention_backward_scratch_is_what_the_kernel_allocates(shape: tuple[int, ...]) -> None:
    query, key, value = (torch.randn(shape) for _ in range(3))
    out, logsumexp = flash(query, key, value)
    operands = (merged_heads(torch.randn(shape)), query, key, value, out, logsumexp)
    expected = scratch(f"{FLASH}_backward.default", operands, torch.get_num_threads())
    assert abs(measured_scratch(lambda: flash_backward(*operands, 0.0, False)) - expected) <= SLACK_BYTES


@pytest.mark.parametrize("length", [128, 256, 1024])
def test_half_precision_attention_backward_is_within_a_fifth(length: int) -> None:
    query = torch.randn(4, 4, length, 64, dtype=torch.bfloat16)
    out, logsumexp = flash(query, query, query)
    operands = (merged_heads(torch.randn_like(query)), query, query, query, out, logsumexp)
    expected = scratch(f"{FLASH}_backward.default", operands, torch.get_num_threads())
    seen = measured_scratch(lambda: flash_backward(*operands, 0.0, False))
    assert expected == pytest.approx(seen, rel=0.2)


def test_a_sort_holds_one_line_of_indices() -> None:
    operand = torch.randn(64, 1000)
    expected = scratch("aten.sort.default", (operand,), threads=1)
    assert measured_scratch(lambda: torch.ops.aten.sort.default(operand)) == expected == 8000


def test_attention_backward_copies_a_gradient_whose_heads_were_never_merged() -> None:
    query, key, value, gradient = (torch.randn(SHAPE) for _ in range(4))
    out, logsumexp = flash(query, key, value)
    operands = (gradient, query, key, value, out, logsumexp)
    expected = scratch(f"{FLASH}_backward.default", operands, torch.get_num_threads(), heads_merged=False)
    assert abs(measured_scratch(lambda: flash_backward(*operands, 0.0, False)) - expected) <= SLACK_BYTES


def test_convolution_backward_holds_its_weight_twice() -> None:
    operands = (torch.empty(2, 8, 4, 4), torch.empty(2, 3, 4, 4), torch.empty(8, 3, 3, 3))
    assert scratch("aten.convolution_backward.default", operands, threads=1) == 2 * operands[2].nbytes


def test_other_operators_have_none() -> None:
    operands = (torch.empty(4, 4), torch.empty(4, 4))
    assert scratch("aten.mm.default", operands, threads=8) == 0
    assert scratch("aten.topk.default", operands, threads=8) == 0


@pytest.mark.parametrize("shape", [(256, 512, 128), (2048, 256, 512), (256, 2048, 1024)])
def test_a_half_precision_matmul_stays_within_what_is_counted(shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    one = torch.randn(inner, rows, dtype=torch.bfloat16).t()
    other = torch.randn(inner, columns, dtype=torch.bfloat16)
    counted = scratch("aten.mm.default", (one, other), threads=2)
    assert 0 < measured_scratch(lambda: (one @ other,)) <= counted
