"""Make Inductor run the kernels of a planned module in the plan's order: its forecast peak holds for that order only.

These optimizations of Inductor change the live bytes that were planned, and are off for planned modules:

- Fusion of loops that share data across an extern kernel between them, which delays the first loop or hastens the
  second: a recomputed GELU fused with the GELU's backward moves the allocation of an 8 MiB gradient before the
  matmul that would have freed an 8 MiB input. Loops between the same two extern kernels still fuse.
- Reordering of kernels for a lower peak (`reorder_for_peak_memory`), by an estimate of its own.
- Reuse of freed buffers for later ones of the same size (`allow_buffer_reuse`), which extends their lifetime.
- Moving collectives and their waits apart (`reorder_for_compute_comm_overlap`, `enable_overlap_scheduling`; from torch
  2.14 on `enable_simple_overlap`, which is on by default), by the same estimate.

Measured with one plan of an 8-layer GPT on the CPU: without the first three a step took 0.95 to 1.01 of plain
Inductor's time, with them 1.06; with two layers the peak of one plan was 38.6 MiB without them and 52.9 MiB with them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import torch
import torch._inductor.config as inductor_config
from torch import fx
from torch._inductor.choices import InductorChoices
from torch._inductor.compile_fx import compile_fx, compile_fx_inner
from torch._inductor.utils import get_donated_idxs
from torch._inductor.virtualized import V

from autockpt.inductor.offload import copies_in_place, is_copy
from autockpt.inductor.patches import channels_last_choice
from autockpt.inductor.release import RELEASE
from autockpt.inductor.saved_layout import with_saved_images
from autockpt.progress import report

_FACTS, _TORCH_OWN = "autockpt_unhashed_facts", "autockpt_torch_own"
"""Keys of `module.meta`."""
_SMALL_BYTES = 64 * 2**10
_LOW_PRECISION = (torch.bfloat16, torch.float16)
_PATCHES = {
    "reorder_for_peak_memory": False,
    "allow_buffer_reuse": False,
    "reorder_for_compute_comm_overlap": False,
    "aten_distributed_optimizations.enable_overlap_scheduling": False,
    **RELEASE.planned_patches,
}


def mark_planned(*modules: fx.GraphModule) -> None:
    """Mark modules of a plan: `InnerCompile` keeps the order of their kernels."""
    for module in modules:
        module.meta[_FACTS] = ()


def mark_torch_own(*modules: fx.GraphModule) -> None:
    """Mark modules of torch's own partition: `InnerCompile` leaves their kernels to Inductor's optimizations.

    Like planned modules they are lowered twice, for the dry run and for the compilation, and must hit the cache.
    """
    for module in modules:
        module.meta[_FACTS], module.meta[_TORCH_OWN] = (), True


class InnerCompile:
    """Inductor's inner compile. In planned modules it keeps the order of kernels and the layout of saved values; it
    changes nothing in others."""

    def __init__(self, overridden: frozenset[str]) -> None:
        """`overridden`: names of Inductor options that the user set, and that are left as they are."""
        self._patches = {name: value for name, value in _PATCHES.items() if name not in overridden}
        self.has_begun = False
        """Whether the graph was partitioned, or a module compiled: AOTAutograd's cache had nothing for it."""

    def __call__(self, module: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        self.has_begun = True
        report(f"compiling the {'backward' if kwargs.get('is_backward') else 'forward'}")
        if _FACTS not in module.meta:
            return compile_fx_inner(module, *args, **kwargs)
        module.meta[_FACTS] = _unhashed_facts(module)
        if _TORCH_OWN in module.meta:
            return compile_fx_inner(module, *args, **kwargs)
        layouts = channels_last_choice(with_saved_images)
        patches = self._patches | copies_in_place(module.graph)
        with inductor_config.patch(patches), V.set_choices_handler(_PlannedOrder()), layouts:
            return compile_fx_inner(module, *args, **kwargs)


def _unhashed_facts(module: fx.GraphModule) -> tuple[tuple[int, ...], ...]:
    """Compile-time facts that Inductor's FX-graph cache does not hash: donated buffers, user-visible outputs.

    Stored in `module.meta`, which is hashed, so that two graphs that differ only in them never share a cache entry.
    Donated buffers are saved values that the backward may overwrite; with `retain_graph` there are none. A user-visible
    output has the strides of eager mode.
    """
    output = next(iter(module.graph.find_nodes(op="output")))
    return tuple(get_donated_idxs() or ()), tuple(output.meta.get("user_visible_output_idxs", ()))


class _PlannedOrder(InductorChoices):
    """Inductor's heuristics without fusion across an extern kernel, unless that changes no lifetime that matters."""

    def __init__(self) -> None:
        super().__init__()
        self._externs: dict[Any, list[Any]] = {}
        """The extern kernels of each scheduler by position; a graph whose operators have subgraphs has several."""

    def can_fuse(self, scheduler: Any, node1: Any, node2: Any, shared_data_score: int) -> bool:  # type: ignore[override]  # static in torch, which calls it on an instance
        early, late = (node1, node2) if node1.min_order <= node2.min_order else (node2, node1)
        between = self._externs_between(scheduler, early.max_order, late.min_order)
        if between and not _keeps_lifetimes(early, late, between) and not _hastens_little(late, between):
            return False
        return InductorChoices.can_fuse(scheduler, node1, node2, shared_data_score)

    def _externs_between(self, scheduler: Any, first: int, last: int) -> list[Any]:
        """Extern kernels at positions after `first` and before `last`; copies to and from the host are none."""
        if scheduler not in self._externs:
            found = (node for node in scheduler.nodes if node.is_extern() and not is_copy(node))
            self._externs[scheduler] = sorted(found, key=_position)
        externs = self._externs[scheduler]
        return externs[bisect_right(externs, first, key=_position) : bisect_left(externs, last, key=_position)]


def _position(node: Any) -> int:
    return int(node.min_order)


def _keeps_lifetimes(early: Any, late: Any, between: list[Any]) -> bool:
    """Whether delaying the early loop extends no lifetime.

    That holds if the late loop reads all buffers that the early one reads, and depends on all kernels between.
    """
    live_until_late = late.used_buffer_names() | early.get_buffer_names()
    reads_are_live = early.used_buffer_names() <= live_until_late
    return reads_are_live and all(extern.get_operation_names() <= late.ancestors for extern in between)


def _hastens_little(late: Any, between: list[Any]) -> bool:
    """Whether the late loop can run before all kernels between, and its results are too small to matter."""
    if any(extern.get_operation_names() & late.ancestors for extern in between):
        return False
    return all(_nbytes(output) <= _SMALL_BYTES for output in late.get_outputs())


def _nbytes(buffer: Any) -> int:
    if not buffer.node.has_tensor_output():
        return 0
    numel = V.graph.sizevars.optimization_hint(buffer.node.get_numel(), fallback=_SMALL_BYTES + 1)
    return int(numel) * int(buffer.node.get_dtype().itemsize)


def precision_patches(gm: fx.GraphModule) -> dict[str, Any]:
    """Options of Inductor that round bf16 and fp16 values where eager does; empty if the graph has none.

    Inside a fused kernel Inductor computes in fp32 and rounds only what it stores. A value that the forward stored and
    the backward recomputes inside a fused kernel would differ from the stored one by that rounding. With it, a
    recomputed value is bitwise equal wherever it is computed.
    """
    values = (node.meta.get("example_value") for node in gm.graph.nodes)
    low = any(isinstance(value, torch.Tensor) and value.dtype in _LOW_PRECISION for value in values)
    return {"emulate_precision_casts": True} if low else {}


def plain_inductor(gm: fx.GraphModule, inputs: Sequence[Any]) -> Any:
    """A Dynamo backend: Inductor without a plan, but with the rounding of `precision_patches`, which plans have too."""
    return compile_fx(gm, list(inputs), config_patches=precision_patches(gm))


def plain_inductor_in_order(gm: fx.GraphModule, inputs: Sequence[Any]) -> Any:
    """The same with kernels in the order of the graph, where its schedule is free to move them for a lower peak.

    Operators that draw from torch's generator have no edges between them, so that the order decides who draws first.
    """
    return compile_fx(gm, list(inputs), config_patches={**precision_patches(gm), "reorder_for_peak_memory": False})
