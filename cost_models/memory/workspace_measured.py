"""Workspace of one convolution on this CPU, measured: the call runs once and its allocations are counted.

oneDNN has a dozen kernels for a convolution and chooses by shape, layout, instruction set and number of threads. What
they allocate has no common formula: of 540 random convolutions in channels-last, with 1, 2 and 8 threads, the backward
took 0 to 8 times the weight padded to blocks of 16 channels on AVX2 and AVX-512, and an unfolded image in every thread
on SSE4.1 (`ONEDNN_MAX_CPU_ISA`). So the code that will run is asked.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from autockpt.cost_models.memory.events import measured_peak

_MEASURED = frozenset({"aten.convolution.default", "aten.convolution_backward.default"})
_MOST_BYTES = 2**31
"""Of the arguments of a call: a larger one is not run only to be measured."""
_known: dict[Any, int] = {}
"""By call and number of threads, for the life of the process."""


def measured_workspace(operator: Any, arguments: Any) -> int | None:
    """Bytes that this call allocates beyond its results; None where calls of this kind or size are not measured.

    `arguments`: tensors of any device, of which shapes, strides and types matter.
    """
    tensors = [leaf for leaf in tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]
    if str(operator) not in _MEASURED or sum(tensor.nbytes for tensor in tensors) > _MOST_BYTES:
        return None
    # The profiler cannot run inside of another one, which somebody may be using to look at this very compilation.
    if torch._C._autograd._profiler_enabled():
        return None
    key = str(operator), torch.get_num_threads(), str(tree_map_only(torch.Tensor, _layout, arguments))
    if key not in _known:
        _known[key] = _measure(operator, tree_map_only(torch.Tensor, _filled, arguments))
    return _known[key]


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape), tensor.stride(), tensor.dtype


def _filled(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu").fill_(1.0)


def _measure(operator: Any, arguments: Any) -> int:
    results: list[Any] = []
    peak = measured_peak(lambda: results.append(operator(*arguments)))
    storages = {t.untyped_storage() for t in tree_leaves(results) if isinstance(t, torch.Tensor)}
    return peak - sum(storage.nbytes() for storage in storages)
