"""Workspace of one operator on the CPU: bytes that its kernel allocates and frees before it returns.

Upper bounds, but for convolutions: oneDNN's kernels for them have no common formula, so a forecast takes what is usual
for tensors in channels-last, and a dry run measures the calls themselves (`workspace_measured`).

| operator | bytes | source |
|---|---|---|
| flash attention | per thread, query block x (key block + head width + 2) floats | FlashAttentionKernel.cpp, measured |
| its backward | per thread, 2 x query block x key block floats + query block floats; the output gradient once more
  if its heads are not merged, because the kernel makes it contiguous | the same |
| both in half precision | in addition the same blocks of scores in half precision; the backward runs matmuls of
  these blocks, one at a time in every thread | the same |
| matmul in half precision | see below | measured |
| convolution | the weight, its channels padded to multiples of 16 in each group | measured, oneDNN, channels-last |
| its backward | twice that; of a depthwise convolution up to 3 x 3, 2 x weight | the same |
| sort | one 8-byte index for each element of the longest dimension | measured |
| float32 matmul, embedding backward, top-k, cumulative sum | none | measured |

Half-precision matmuls depend on the processor. torch hands them to oneDNN where oneDNN has kernels for the type, which
is a question of the instruction set (ONEDNN_MAX_CPU_ISA lowers it) and is answered by `onednn_half_types`:

- oneDNN without kernels for the type (bfloat16 below AVX-512, float16 below AVX512-FP16): torch's own loops, no
  workspace.
- oneDNN on AVX-512 without bf16 instructions: the result in float32, of as many matrices of a batch as run at once.
- oneDNN with them: every thread copies a block of each operand and accumulates in float32. The copy of the first
  operand has at most 256 rows; the one of the second 64 columns; both are at most twice as deep as the operands,
  and at most 4096 deep for an L2 cache of 1 MiB.

torch does not say which of the last two runs, so the larger one is forecast. The block sizes were fitted to 4,563
bfloat16 matmuls and then checked on 3,848 others of random sizes up to 5,800, with 1 to 8 threads, with and without
bf16 instructions: none above the bound. All on one AMD EPYC (Zen 4, L2 cache of 1 MiB), torch 2.13, oneDNN 3.12; there
too attention with ONEDNN_MAX_CPU_ISA from SSE41 to AVX512_CORE_BF16. Not measured: other L2 sizes, AMX, float16 by
oneDNN, ARM.
"Measured" means allocation events of the profiler around one call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from math import prod

import torch

from autockpt.cost_models.work import TensorSpec

_FLASH = "aten._scaled_dot_product_flash_attention_for_cpu"
_FLOAT = 4
_MIB = 2**20
_BLOCK = 16
_DEPTHWISE_KERNEL = 3
"""Largest depthwise kernel that oneDNN has code for; others run as convolutions in groups, padded to blocks."""
Specs = tuple[TensorSpec, ...]


def workspace_bytes(operator: str, inputs: Specs, threads: int, *, heads_merged: bool = True) -> int:
    """Upper bound on the workspace of one call on this processor; 0 for operators without a rule.

    `heads_merged`: attention's output gradient is a transposed (batch, length, heads, width) tensor.
    """
    packet = operator.rpartition(".")[0]
    rule = _RULES.get(packet)
    if rule is None:
        return 0
    copied = 0 if heads_merged or packet != f"{_FLASH}_backward" else inputs[0].nbytes
    return copied + rule(inputs, threads)


@functools.cache
def onednn_half_types() -> frozenset[str]:
    """Half-precision types whose matmuls oneDNN computes on this processor."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return frozenset()
    operators = torch.ops.mkldnn
    supported = {
        "bfloat16": operators._is_mkldnn_bf16_supported(),
        "float16": operators._is_mkldnn_fp16_supported(),
    }
    return frozenset(dtype for dtype, is_supported in supported.items() if is_supported)


def _flash(inputs: Specs, threads: int) -> int:
    query, key = inputs[:2]
    rows, columns = _blocks(query, key)
    scores = _FLOAT * rows * (columns + query.shape[-1] + 2)
    return threads * (scores + _half_precision_scores(query, rows, columns))


def _flash_backward(inputs: Specs, threads: int) -> int:
    query, key = inputs[1:3]
    rows, columns = _blocks(query, key)
    scores = _FLOAT * rows * (2 * columns + 1) + 2 * _half_precision_scores(query, rows, columns)
    return threads * (scores + max(_block_matmuls(query, rows, columns)))


def _block_matmuls(query: TensorSpec, rows: int, columns: int) -> Iterator[int]:
    """Of the matmuls on one block of scores: of a row-major call oneDNN computes the transposed product."""
    width = query.shape[-1]
    for left, depth, right in ((rows, width, columns), (columns, rows, width), (rows, columns, width)):
        yield _matmul_bytes(query.dtype, 1, left, depth, right, threads=1)
        yield _matmul_bytes(query.dtype, 1, right, depth, left, threads=1)


def _blocks(query: TensorSpec, key: TensorSpec) -> tuple[int, int]:
    """Rows and columns of one block of scores: the kernel takes larger blocks for longer queries."""
    length = query.shape[-2]
    rows = 256 if length >= 768 else 64 if length >= 192 else 32
    columns = min(512, key.shape[-2])
    # With AMX the kernel pads the keys of a block to a multiple of 64.
    return min(rows, length), _round_up(columns, 64) if query.dtype in onednn_half_types() else columns


def _half_precision_scores(query: TensorSpec, rows: int, columns: int) -> int:
    return rows * columns * query.itemsize if query.itemsize < _FLOAT else 0


def _matmul(inputs: Specs, threads: int) -> int:
    left, right = inputs[-2:]
    if len(left.shape) < 2 or len(right.shape) < 2:
        return 0
    rows, depth, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    batch = left.numel // max(rows * depth, 1)
    return _matmul_bytes(left.dtype, batch, rows, depth, columns, threads)


def _matmul_bytes(dtype: str, batch: int, rows: int, depth: int, columns: int, threads: int) -> int:
    if dtype not in onednn_half_types():
        return 0
    in_float32 = _FLOAT * min(batch, threads) * rows * columns + 4096
    return max(in_float32, threads * _copied_blocks(rows, depth))


def _copied_blocks(rows: int, depth: int) -> int:
    """What one thread copies of both operands, and its float32 sums."""
    rows, columns = min(_round_up(rows, 64), 256), 64
    depth = min(2 * _round_up(depth, 64), 4096 * max(1, -(-_l2_cache_bytes() // _MIB)))
    return 2 * depth * (rows + columns) + _FLOAT * rows * columns + 20 * 2**10


@functools.cache
def _l2_cache_bytes() -> int:
    return int(torch.cpu.get_capabilities().get("l2_cache_size", _MIB))


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _convolution(inputs: Specs, _: int) -> int:
    image, weight = inputs[:2]
    return weight.nbytes if _groups(image, weight) > 1 else _blocked_bytes(weight, 1)


def _convolution_backward(inputs: Specs, _: int) -> int:
    image, weight = inputs[1:3]
    groups = _groups(image, weight)
    if groups == 1:
        return 2 * _blocked_bytes(weight, 1)
    has_own_kernel = weight.shape[1] == 1 and max(weight.shape[2:], default=1) <= _DEPTHWISE_KERNEL
    return 2 * weight.nbytes + (0 if has_own_kernel else _blocked_bytes(weight, groups))


def _groups(image: TensorSpec, weight: TensorSpec) -> int:
    return max(image.shape[1] // max(weight.shape[1], 1), 1)


def _blocked_bytes(weight: TensorSpec, groups: int) -> int:
    """Of the weight in oneDNN's layout of blocks of 16 x 16 channels."""
    out, in_group, *kernel = weight.shape
    blocked = groups * _round_up(-(-out // groups), _BLOCK) * _round_up(in_group, _BLOCK)
    return blocked * prod(kernel) * weight.itemsize


def _sort(inputs: Specs, _: int) -> int:
    return 8 * max(inputs[0].shape, default=0)


_RULES: dict[str, Callable[[Specs, int], int]] = {
    _FLASH: _flash,
    f"{_FLASH}_backward": _flash_backward,
    "aten.convolution": _convolution,
    "aten.convolution_backward": _convolution_backward,
    "aten.sort": _sort,
    "aten.mm": _matmul,
    "aten.addmm": _matmul,
    "aten.bmm": _matmul,
    "aten.baddbmm": _matmul,
}
