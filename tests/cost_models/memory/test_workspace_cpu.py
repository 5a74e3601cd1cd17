"""The forecast workspace bounds from above what real kernels allocate, on whatever processor the tests run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import torch

from autockpt.cost_models import TensorSpec, workspace_bytes
from autockpt.cost_models.memory.workspace_cpu import onednn_half_types
from autockpt.measure.peak import measure_peak

FLASH = "aten._scaled_dot_product_flash_attention_for_cpu"
SHAPE = (8, 4, 256, 64)
SLACK_BYTES = 64 * 2**10
HALF_TYPES = [torch.bfloat16, torch.float16]

flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
flash_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


def forecast(
    operator: str, tensors: tuple[torch.Tensor, ...], threads: int | None = None, heads_merged: bool = True
) -> int:
    specs = (
        TensorSpec(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), tensor.itemsize) for tensor in tensors
    )
    return workspace_bytes(operator, tuple(specs), threads or torch.get_num_threads(), heads_merged=heads_merged)


def measure(call: Callable[[], tuple[torch.Tensor, ...]]) -> int:
    """Peak bytes of a call above what it returns. The profiler sees allocations of the calling thread only."""
    outputs: list[torch.Tensor] = []
    peak = measure_peak(lambda: outputs.extend(call()), torch.device("cpu"))
    return peak - sum(tensor.nbytes for tensor in outputs)


def merged_heads(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in the layout of a gradient that reaches attention from a model that joins its heads."""
    return tensor.transpose(1, 2).contiguous().transpose(1, 2)


def is_onednn(dtype: torch.dtype) -> bool:
    return str(dtype).removeprefix("torch.") in onednn_half_types()


@pytest.mark.parametrize("operator", [FLASH, f"{FLASH}_backward"])
def test_attention_workspace_is_per_thread(operator: str) -> None:
    operands = tuple(torch.empty(SHAPE, device="meta") for _ in range(6))
    one = forecast(f"{operator}.default", operands, threads=1)
    assert one > 0
    assert forecast(f"{operator}.default", operands, threads=6) == 6 * one


@pytest.mark.parametrize("length", [100, 256, 1024])
@pytest.mark.parametrize("dtype", [torch.float32, *HALF_TYPES])
def test_attention_workspace_is_what_the_kernel_allocates(length: int, dtype: torch.dtype) -> None:
    operands = tuple(torch.randn(2, 4, length, 64, dtype=dtype) for _ in range(3))
    bound = forecast(f"{FLASH}.default", operands)
    assert bound - SLACK_BYTES <= measure(lambda: flash(*operands)) <= bound


@pytest.mark.parametrize("shape", [SHAPE, (2, 4, 100, 64), (2, 2, 1024, 64)])
@pytest.mark.parametrize("heads_merged", [True, False])
def test_attention_backward_workspace_is_what_the_kernel_allocates(shape: tuple[int, ...], heads_merged: bool) -> None:
    query, key, value, gradient = (torch.randn(shape) for _ in range(4))
    out, logsumexp = flash(query, key, value)
    operands = (merged_heads(gradient) if heads_merged else gradient, query, key, value, out, logsumexp)
    bound = forecast(f"{FLASH}_backward.default", operands, heads_merged=heads_merged)
    assert bound - SLACK_BYTES <= measure(lambda: flash_backward(*operands, 0.0, False)) <= bound


@pytest.mark.parametrize("length", [100, 128, 256, 1024])
@pytest.mark.parametrize("dtype", HALF_TYPES)
def test_half_precision_attention_backward_stays_below_its_bound(length: int, dtype: torch.dtype) -> None:
    """At least a third of the bound is used; without oneDNN's matmuls all but the last few bytes of it."""
    query = torch.randn(4, 4, length, 64, dtype=dtype)
    out, logsumexp = flash(query, query, query)
    operands = (merged_heads(torch.randn_like(query)), query, query, query, out, logsumexp)
    bound = forecast(f"{FLASH}_backward.default", operands)
    measured = measure(lambda: flash_backward(*operands, 0.0, False))
    assert measured <= bound
    assert bound <= (3 * measured if is_onednn(dtype) else measured + SLACK_BYTES)


@pytest.mark.parametrize("shape", [(256, 512, 128), (1024, 128, 256), (64, 1024, 512), (64, 4096, 64), (8, 8, 8)])
@pytest.mark.parametrize("dtype", HALF_TYPES)
@pytest.mark.parametrize("threads", [1, 8])
def test_half_precision_matmul_stays_below_its_bound(
    shape: tuple[int, int, int], dtype: torch.dtype, threads: int, number_of_threads: Callable[[int], None]
) -> None:
    """The bound is zero where oneDNN has no kernels for the type."""
    number_of_threads(threads)
    rows, depth, columns = shape
    left = torch.zeros(depth, rows, dtype=dtype).t()
    right = torch.zeros(depth, columns, dtype=dtype)
    bound = forecast("aten.mm.default", (left, right), threads)
    assert measure(lambda: (left @ right,)) <= bound
    assert is_onednn(dtype) == (bound > 0)


@pytest.mark.parametrize("batch", [1, 2, 16])
def test_half_precision_batched_matmul_stays_below_its_bound(batch: int) -> None:
    left = torch.zeros(batch, 256, 128, dtype=torch.bfloat16)
    right = torch.zeros(batch, 128, 256, dtype=torch.bfloat16)
    assert measure(lambda: (left @ right,)) <= forecast("aten.bmm.default", (left, right))


def test_the_bound_of_a_half_precision_matmul_is_at_most_its_result_in_float32_or_3_mib_a_thread() -> None:
    operands = (torch.empty(4096, 4096, dtype=torch.bfloat16), torch.empty(4096, 64, dtype=torch.bfloat16))
    megabytes = max(2**20, torch.cpu.get_capabilities().get("l2_cache_size", 0)) / 2**20
    assert forecast("aten.mm.default", operands, threads=4) <= 4 * 3 * 2**20 * -(-megabytes // 1)
    wide = (operands[0], torch.empty(4096, 65536, dtype=torch.bfloat16))
    assert forecast("aten.mm.default", wide, threads=4) <= 4 * 4096 * 65536 + 4096


@pytest.mark.parametrize("instructions", ["SSE41", "AVX512_CORE"])
def test_the_bounds_hold_where_onednn_may_use_fewer_instructions(instructions: str) -> None:
    """A slower instruction set stands for an older processor; oneDNN reads the variable once, when it is loaded."""
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": instructions}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "stays_below_its_bound"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


@pytest.fixture
def number_of_threads() -> Iterator[Callable[[int], None]]:
    """torch.set_num_threads for one test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_a_sort_holds_one_line_of_indices() -> None:
    operand = torch.randn(64, 1000)
    bound = forecast("aten.sort.default", (operand,))
    assert measure(lambda: torch.ops.aten.sort.default(operand)) == bound == 8000


@pytest.mark.parametrize(
    ("weight", "channels", "forward", "backward"),
    [
        ((32, 16, 3, 3), 16, 32 * 16 * 9, 2 * 32 * 16 * 9),
        ((192, 3, 16, 16), 3, 192 * 16 * 256, 2 * 192 * 16 * 256),
        ((96, 1, 3, 3), 96, 96 * 9, 2 * 96 * 9),
        ((96, 1, 7, 7), 96, 96 * 49, (2 + 16 * 16) * 96 * 49),
    ],
    ids=["padded to nothing", "patches", "depthwise", "large depthwise"],
)
def test_a_convolution_is_forecast_by_its_weight_in_blocks_of_16_channels(
    weight: tuple[int, ...], channels: int, forward: int, backward: int
) -> None:
    image, kernel = torch.empty(2, channels, 16, 16), torch.empty(weight)
    gradient = torch.empty(2, weight[0], 4, 4)
    assert forecast("aten.convolution.default", (image, kernel)) == 4 * forward
    assert forecast("aten.convolution_backward.default", (gradient, image, kernel)) == 4 * backward


def test_other_operators_have_none() -> None:
    operands = (torch.empty(4, 4), torch.empty(4, 4))
    assert forecast("aten.mm.default", operands) == 0
    assert forecast("aten.topk.default", operands) == 0
