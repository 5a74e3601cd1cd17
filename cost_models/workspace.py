"""Bytes that a kernel allocates inside itself and frees before it returns, on the CPU.

- Flash attention: per thread a query block times (key block + head width + 2) floats.
- Its backward: per thread twice a query block times a key block of floats.
  Both from aten/src/ATen/native/cpu/FlashAttentionKernel.cpp of torch 2.13, and seen in allocation events.
- Convolution backward: twice the weight, seen in allocation events of torch 2.13 with oneDNN.
"""

from __future__ import annotations

from autockpt.cost_models.work import TensorSpec

_FLASH = "aten._scaled_dot_product_flash_attention_for_cpu"


def workspace_bytes(operator: str, inputs: tuple[TensorSpec, ...], threads: int, *, heads_merged: bool = True) -> int:
    """Scratch of one call on the CPU; 0 where none is known.

    `heads_merged`: the gradient comes from (batch, length, heads, width); attention copies it otherwise.
    """
    packet = operator.rpartition(".")[0]
    if packet == _FLASH:
        rows, columns = _blocks(inputs[0], inputs[1])
        return 4 * threads * rows * (columns + inputs[0].shape[-1] + 2) + _narrow(inputs[0], threads, rows, columns)
    if packet == f"{_FLASH}_backward":
        rows, columns = _blocks(inputs[1], inputs[2])
        copied = 0 if heads_merged else inputs[0].nbytes
        return copied + 4 * threads * 2 * rows * columns + 2 * _narrow(inputs[1], threads, rows, columns)
    if packet == "aten.convolution_backward":
        return 2 * inputs[2].nbytes
    return 0


def _blocks(query: TensorSpec, key: TensorSpec) -> tuple[int, int]:
    """How attention is tiled: longer queries in larger blocks, keys in blocks of at most 512."""
    length = query.shape[-2]
    rows = 256 if length >= 768 else 64 if length >= 192 else 32
    return min(rows, length), min(512, key.shape[-2])


def _narrow(query: TensorSpec, threads: int, rows: int, columns: int) -> int:
    """Half-precision attention holds its scores in both precisions."""
    return threads * rows * columns * query.itemsize if query.itemsize < 4 else 0
