"""Workspace of one operator on a GPU: bytes that its kernel allocates and frees before it returns.

| operator | bytes | source |
|---|---|---|
| flash attention backward | the query gradient in float32, length rounded up to 128 and width to 32; a float for each
  query; where query heads share keys, the gradients of keys and values for every query head | flash_api.cpp, mha_bwd |
| efficient attention backward | the query gradient in float32, in tiles of 64 x 64; a float for each query |
  kernel_backward.h, workspace_size |
| matmul | none of its own: cuBLAS has one workspace for the process, `cublas_bytes` | CublasHandlePool.cpp |
| convolution | not known: cuDNN chooses its algorithm at run time | |

Sources are files of torch. Not counted: the accumulators of a flash attention forward that is split along the keys
(split-KV), which runs for few queries only.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from autockpt.cost_models.work import TensorSpec

Specs = tuple[TensorSpec, ...]
_KIB = 1024
_FLOAT = 4


def cuda_workspace_bytes(operator: str, inputs: Specs) -> int:
    """Workspace of one call; 0 for operators without a rule."""
    rule = _RULES.get(operator.rpartition(".")[0])
    return rule(inputs) if rule else 0


def cublas_bytes(capability: tuple[int, int], config: str | None = None) -> int:
    """What torch allocates for cuBLAS at the first matmul and never frees; `config` as in CUBLAS_WORKSPACE_CONFIG."""
    if pairs := re.findall(r":(\d+):(\d+)", config or ""):
        return sum(int(size) * int(count) for size, count in pairs) * _KIB
    return (8 * 4096 if capability >= (9, 0) else 2 * 4096 + 8 * 16) * _KIB


def _flash_backward(inputs: Specs) -> int:
    query, key = inputs[1:3]
    batch, heads, length, width = query.shape
    rows = _round_up(length, 128)
    summed = _FLOAT * batch * heads * rows * (_round_up(width, 32) + 1)
    shared = 2 * batch * heads * key.shape[2] * width * query.itemsize if key.shape[1] != heads else 0
    return summed + shared


def _efficient_backward(inputs: Specs) -> int:
    batch, heads, length, width = inputs[1].shape
    return _FLOAT * batch * heads * (_round_up(length, 64) * _round_up(width, 64) + length)


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


_RULES: dict[str, Callable[[Specs], int]] = {
    "aten._scaled_dot_product_flash_attention_backward": _flash_backward,
    "aten._scaled_dot_product_efficient_attention_backward": _efficient_backward,
}
