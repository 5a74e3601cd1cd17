"""Make Inductor keep the plan's order: the forecast is worth what the order is worth.

Three habits of Inductor move memory away from what was planned, and are off for graphs that we planned:

- It fuses loops that share data even when a matmul stands between them, which makes one wait for the other:
  a recomputed GELU merged with the GELU's backward pulls an 8 MiB gradient in front of the matmul that would
  have freed an 8 MiB input. Loops still fuse freely between two kernels that cannot fuse.
- It may run the kernels in another order that it estimates to be lower.
- It holds freed buffers for reuse by later ones of the same size, where it estimates that this is harmless.

Measured with one plan of an 8-layer GPT on the CPU: steps took x0.95 to x1.01 of plain Inductor's this way and x1.06
with Inductor's habits; with two layers the peak of one plan was 38.6 instead of 52.9 MiB.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

import torch
import torch._inductor.config as inductor_config
from torch import fx
from torch._inductor.choices import InductorChoices
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.utils import get_donated_idxs
from torch._inductor.virtualized import V

_MARK, _OWN = "autockpt_planned", "autockpt_own"
_SMALL = 64 * 2**10
_LOW_PRECISION = (torch.bfloat16, torch.float16)
_PATCHES = {"reorder_for_peak_memory": False, "allow_buffer_reuse": False}


def mark_planned(*modules: fx.GraphModule) -> None:
    """Tell `InnerCompile` that the order of these modules is ours."""
    for module in modules:
        module.meta[_MARK] = ()


def mark_torch_own(*modules: fx.GraphModule) -> None:
    """Tell it that these are Inductor's own, but lowered before they are asked for."""
    for module in modules:
        module.meta[_MARK], module.meta[_OWN] = (), True


class InnerCompile:
    """Inductor's inner compile; planned modules keep their order, all others are none of our business."""

    def __init__(self, overridden: frozenset[str]) -> None:
        self._patches = {name: value for name, value in _PATCHES.items() if name not in overridden}

    def __call__(self, module: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        if _MARK not in module.meta:
            return compile_fx_inner(module, *args, **kwargs)
        module.meta[_MARK] = _told(module)
        if _OWN in module.meta:
            return compile_fx_inner(module, *args, **kwargs)
        with inductor_config.patch(self._patches), V.set_choices_handler(_KeepOrder()):
            return compile_fx_inner(module, *args, **kwargs)


def _told(module: fx.GraphModule) -> tuple[tuple[int, ...], ...]:
    """What Inductor is told beside the module and leaves out of its cache's key; what hangs on the module is in it.

    A backward may write over what was saved, but not where `retain_graph` asks for a second one. A result that the
    user sees has the strides that eager gives to it.
    """
    output = next(iter(module.graph.find_nodes(op="output")))
    return tuple(get_donated_idxs() or ()), tuple(output.meta.get("user_visible_output_idxs", ()))


class _KeepOrder(InductorChoices):
    """Inductor's heuristics, but no fusion across a kernel that cannot fuse, unless nothing waits longer for it."""

    @staticmethod
    def can_fuse(scheduler: Any, node1: Any, node2: Any, shared_data_score: int) -> bool:
        early, late = (node1, node2) if node1.min_order <= node2.min_order else (node2, node1)
        between = _barriers_between(scheduler, early.max_order, late.min_order)
        if between and not _waits_anyway(early, late, between) and not _moves_up_freely(late, between):
            return False
        return InductorChoices.can_fuse(scheduler, node1, node2, shared_data_score)


def _waits_anyway(early: Any, late: Any, between: list[Any]) -> bool:
    """All that stands between is recomputed for the late one, and what the early one reads is held for that anyway."""
    return early.used_buffer_names() <= late.used_buffer_names() | early.get_buffer_names() and all(
        barrier.get_operation_names() <= late.ancestors for barrier in between
    )


def _moves_up_freely(late: Any, between: list[Any]) -> bool:
    """The late one needs nothing of what stands between, and its results are too small to matter."""
    if any(barrier.get_operation_names() & late.ancestors for barrier in between):
        return False
    return all(_nbytes(output) <= _SMALL for output in late.get_outputs())


def _nbytes(buffer: Any) -> int:
    if not buffer.node.has_tensor_output():
        return 0
    numel = V.graph.sizevars.optimization_hint(buffer.node.get_numel(), fallback=_SMALL + 1)
    return int(numel) * int(buffer.node.get_dtype().itemsize)


def _barriers_between(scheduler: Any, first: int, last: int) -> list[Any]:
    """Kernels that cannot fuse with positions in between; found once for each scheduler."""
    if not hasattr(scheduler, "autockpt_barriers"):
        externs = [node for node in scheduler.nodes if node.is_extern()]
        scheduler.autockpt_barriers = sorted((node.min_order, number, node) for number, node in enumerate(externs))
    barriers: list[tuple[int, int, Any]] = scheduler.autockpt_barriers
    start = bisect_right(barriers, first, key=lambda barrier: barrier[0])
    end = bisect_left(barriers, last, key=lambda barrier: barrier[0])
    return [node for _, _, node in barriers[start:end]]


def precision_patches(gm: fx.GraphModule) -> dict[str, Any]:
    """Round where eager rounds, when anything is bf16 or fp16.

    Inside a fused kernel Inductor computes in fp32 and rounds only what it stores. A value that was stored by
    the forward and is fused into the backward when recomputed would then not be the value that was thrown away.
    With every rounding in its place each value is the same wherever it is computed.
    """
    values = (node.meta.get("example_value") for node in gm.graph.nodes)
    low = any(isinstance(value, torch.Tensor) and value.dtype in _LOW_PRECISION for value in values)
    return {"emulate_precision_casts": True} if low else {}
