"""Bytes that a library's kernel allocates inside itself on a GPU and frees before it returns.

| kernel | bytes | source |
|---|---|---|
| flash attention's backward | the queries' gradient in float32, length to 128 and width to 32; a float for each query;
  where heads share keys, gradients of keys and values for every head | torch: flash_api.cpp, mha_bwd |
| efficient attention's backward | the queries' gradient in float32, in tiles of 64 x 64; a float for each query |
  torch: kernel_backward.h, workspace_size |
| matmul | none: cuBLAS has one workspace for all, `cublas_bytes` | torch: CublasHandlePool.cpp |
| convolution | not known: cuDNN chooses when it runs | |

Of a flash attention's forward that is cut in two for want of work, which takes a little more, nothing is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from autockpt.cost_models.work import TensorSpec

Specs = tuple[TensorSpec, ...]
_KIB = 1024
_FLOAT = 4


def cuda_workspace_bytes(operator: str, inputs: Specs) -> int:
    """Scratch of one call on a GPU; 0 where none is known."""
    rule = _RULES.get(operator.rpartition(".")[0])
    return rule(inputs) if rule else 0


def cublas_bytes(capability: tuple[int, int], config: str | None = None) -> int:
    """What torch allocates for cuBLAS at its first matmul, and keeps; `config` as in CUBLAS_WORKSPACE_CONFIG."""
    if pairs := re.findall(r":(\d+):(\d+)", config or ""):
        return sum(int(size) * int(count) for size, count in pairs) * _KIB
    return (8 * 4096 if capability >= (9, 0) else 2 * 4096 + 8 * 16) * _KIB


def _flash_backward(inputs: Specs) -> int:
    query, key = inputs[1:3]
    batch, heads, length, width = query.shape
    rows = _up(length, 128)
    summed = _FLOAT * batch * heads * rows * (_up(width, 32) + 1)
    shared = 2 * batch * heads * key.shape[2] * width * query.itemsize if key.shape[1] != heads else 0
    return summed + shared


def _efficient_backward(inputs: Specs) -> int:
    batch, heads, length, width = inputs[1].shape
    return _FLOAT * batch * heads * (_up(length, 64) * _up(width, 64) + length)


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


_RULES: dict[str, Callable[[Specs], int]] = {
    "aten._scaled_dot_product_flash_attention_backward": _flash_backward,
    "aten._scaled_dot_product_efficient_attention_backward": _efficient_backward,
}
