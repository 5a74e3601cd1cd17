"""Bytes that a kernel allocates inside itself and frees before it returns, on the CPU.

| kernel | bytes | source |
|---|---|---|
| flash attention | per thread, query block x (key block + width + 2) x 4 | torch FlashAttentionKernel.cpp; events |
| its backward | per thread, 2 x query block x key block floats; a gradient whose heads are apart is copied | the same |
| both in half precision | the scores in both precisions; the backward packs blocks for oneDNN too | events, to 15 % |
| convolution backward | 2 x weight | events, oneDNN, channels-last |
| sort | one index for each element along the longest dimension | events |
| matmul in half precision | 1.5 MiB, or its result in float32 if that is more | events, oneDNN: 0.2 to 1.46 MB with
  bf16 instructions, the whole result without |
| matmul, embedding backward, top-k, cumulative sum | none | events |

Events: allocation events of the profiler around one call, torch 2.13 on x86.
"""

from __future__ import annotations

from collections.abc import Callable

from autockpt.cost_models.work import TensorSpec

_FLASH = "aten._scaled_dot_product_flash_attention_for_cpu"
Specs = tuple[TensorSpec, ...]


def workspace_bytes(operator: str, inputs: Specs, threads: int, *, heads_merged: bool = True) -> int:
    """Scratch of one call on the CPU; 0 where none is known.

    `heads_merged`: the gradient comes from (batch, length, heads, width); attention copies it otherwise.
    """
    packet = operator.rpartition(".")[0]
    rule = _RULES.get(packet)
    if rule is None:
        return 0
    copied = 0 if heads_merged or packet != f"{_FLASH}_backward" else inputs[0].nbytes
    return copied + rule(inputs, threads)


def _flash(inputs: Specs, threads: int) -> int:
    rows, columns = _blocks(inputs[0], inputs[1])
    return 4 * threads * rows * (columns + inputs[0].shape[-1] + 2) + _narrow(inputs[0], threads, rows, columns)


def _flash_backward(inputs: Specs, threads: int) -> int:
    rows, columns = _blocks(inputs[1], inputs[2])
    packed = threads * columns * (rows + 3 * inputs[1].shape[-1]) if inputs[1].itemsize < 4 else 0
    return 4 * threads * 2 * rows * columns + 2 * _narrow(inputs[1], threads, rows, columns) + packed


def _convolution_backward(inputs: Specs, _: int) -> int:
    return 2 * inputs[2].nbytes


def _sort(inputs: Specs, _: int) -> int:
    return 8 * max(inputs[0].shape, default=0)


def _matmul(inputs: Specs, _: int) -> int:
    one, other = inputs[-2:]
    if one.itemsize >= 4 or not one.shape or not other.shape:
        return 0
    # What a processor without bf16 instructions takes; nobody knows here on which the step will run.
    result = one.numel // max(one.shape[-1], 1) * other.shape[-1]
    return max(3 * 2**19, 4 * result + 4096)


_RULES: dict[str, Callable[[Specs, int], int]] = {
    _FLASH: _flash,
    f"{_FLASH}_backward": _flash_backward,
    "aten.convolution_backward": _convolution_backward,
    "aten.sort": _sort,
    "aten.mm": _matmul,
    "aten.addmm": _matmul,
    "aten.bmm": _matmul,
    "aten.baddbmm": _matmul,
}


def _blocks(query: TensorSpec, key: TensorSpec) -> tuple[int, int]:
    """How attention is tiled: longer queries in larger blocks, keys in blocks of at most 512."""
    length = query.shape[-2]
    rows = 256 if length >= 768 else 64 if length >= 192 else 32
    return min(rows, length), min(512, key.shape[-2])


def _narrow(query: TensorSpec, threads: int, rows: int, columns: int) -> int:
    """Half-precision attention holds its scores in both precisions."""
    return threads * rows * columns * query.itemsize if query.itemsize < 4 else 0
