"""Run the generated code of a step on meta tensors, and count the bytes of live storages: the compiled peak.

The wrapper code and its order of allocations and frees are those of the real step; only kernels do nothing. So the
count is exact for everything that Inductor allocates, on any machine, also for a device that is not here. What an
allocation takes beyond its bytes (alignment), and the workspaces that extern kernels allocate inside themselves, are
added by `cost_models.memory`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from autockpt.cost_models.memory import GpuMemory, memory_of
from autockpt.inductor.aot import Modules
from autockpt.inductor.codegen import StepMetadata, Wrapper, lower_step, output_count
from autockpt.inductor.fake.meta_storages import MetaStorages, Predicates, checked_size
from autockpt.inductor.patches import wrapper_functions
from autockpt.inductor.scheduler import InnerCompile
from autockpt.passes.sizes import Sizes


@dataclass(frozen=True)
class DryRun:
    """Bytes that the generated code of a step allocates, parameters and inputs of the step not included."""

    peak_bytes: int
    in_backward: bool
    """Whether the peak is in the backward."""
    saved_bytes: int
    """Live at the boundary between forward and backward: saved values and outputs."""
    workspace: tuple[str, int] | None
    """The extern kernel that runs at the peak, and the bytes of its workspace; None if it has none."""
    forward_bytes: int = 0
    """The peak of the forward alone."""
    backward_bytes: int = 0
    """The peak of the backward alone; the outputs of the forward are counted in it."""
    reserved_bytes: int = 0
    """Segments that torch's CUDA caching allocator reserves, parameters and inputs included; 0 on the CPU."""
    host_bytes: int = 0
    """The most that is on the host at a time."""
    timeline: tuple[int, ...] = field(default=(), repr=False)
    """Live bytes after every allocation."""


@dataclass(frozen=True)
class LoweredStep:
    """The generated code of a step, to be run dry at any sizes."""

    forward: Wrapper
    backward: Wrapper
    forward_outputs: int
    threads: int

    def dry_run(self, sizes: Sizes | None = None) -> DryRun:
        """At these dynamic sizes; at those that were traced, without any."""
        return dry_run(self.forward, self.backward, self.forward_outputs, self.threads, sizes)


def dry_run(
    forward: Wrapper, backward: Wrapper, forward_outputs: int, threads: int, sizes: Sizes | None = None
) -> DryRun:
    """One step: the forward, then the backward, which frees saved values after their last use.

    Where the code branches on data, once with every branch taken and once with none: the larger peak counts.
    """
    taken, skipped = Predicates(True), Predicates(False)
    found = _run(forward, backward, forward_outputs, threads, sizes, taken)
    if not taken.were_asked:
        return found
    other = _run(forward, backward, forward_outputs, threads, sizes, skipped)
    larger = max(found, other, key=lambda run: run.peak_bytes)
    return replace(
        larger,
        saved_bytes=max(found.saved_bytes, other.saved_bytes),
        forward_bytes=max(found.forward_bytes, other.forward_bytes),
        backward_bytes=max(found.backward_bytes, other.backward_bytes),
        reserved_bytes=max(found.reserved_bytes, other.reserved_bytes),
        host_bytes=max(found.host_bytes, other.host_bytes),
        timeline=found.timeline + other.timeline,
    )


def _run(
    forward: Wrapper,
    backward: Wrapper,
    forward_outputs: int,
    threads: int,
    sizes: Sizes | None,
    predicates: Predicates,
) -> DryRun:
    memory = memory_of(forward.examples, threads)
    live = MetaStorages(memory, sizes, predicates)
    with unset_fake_temporarily(), live, _allocating_meta(forward.code), _allocating_meta(backward.code):
        inputs = [live.graph_input(example) for example in forward.examples]
        results = list(forward.code.call(list(inputs)))
        saved_bytes, first_peak, at_first = live.now, live.peak, live.workspace
        live.peak, live.workspace = live.now, None
        values = dict(zip(forward.results, results, strict=True))
        held = results[:forward_outputs]
        tangents = {
            name: live.count(live.meta(example))
            for name, example in zip(backward.arguments, backward.examples, strict=True)
            if name not in values
        }
        arguments = [values[name] if name in values else tangents[name] for name in backward.arguments]
        if isinstance(memory, GpuMemory):
            # The autograd engine holds the tangents until the backward returns, unless they were copied for it. On the
            # CPU measurements show that they are freed; for a GPU this is an upper bound.
            held += tangents.values()
        del results, values, tangents
        gradients = backward.code.call(arguments)
        live.peak = max(live.peak, live.now + _copied_bytes(inputs, gradients))
        del held, gradients, inputs
    in_backward = live.peak > first_peak
    return DryRun(
        peak_bytes=max(live.peak, first_peak),
        in_backward=in_backward,
        saved_bytes=saved_bytes,
        workspace=live.workspace if in_backward else at_first,
        forward_bytes=first_peak,
        backward_bytes=live.peak,
        reserved_bytes=memory.reserved_bytes,
        host_bytes=live.host_peak,
        timeline=tuple(live.timeline),
    )


def _copied_bytes(inputs: Sequence[Any], gradients: Sequence[Any]) -> int:
    """The most that autograd allocates when the backward is over: it copies a gradient whose strides are not those of
    its parameter. Gradients are in the order of the graph's inputs, None for those without."""
    pairs = zip(inputs, gradients, strict=False)
    return max((one.nbytes for of, one in pairs if _is_moved(of, one)), default=0)


def _is_moved(tensor: Any, gradient: Any) -> bool:
    """Whether elements are in another order in memory; a dimension of one element has none."""
    if not isinstance(tensor, torch.Tensor) or not isinstance(gradient, torch.Tensor):
        return False
    if tensor.size() != gradient.size():
        return False
    strides = zip(tensor.size(), tensor.stride(), gradient.stride(), strict=True)
    return any(one != other for size, one, other in strides if size != 1)


def _allocating_meta(code: ModuleType) -> AbstractContextManager[None]:
    """Make a generated wrapper allocate meta tensors, which the dispatch mode counts."""

    def empty_strided(size: Any, stride: Any, dtype: torch.dtype, *_: Any, **__: Any) -> Any:
        return torch.empty_strided(checked_size(size), stride, dtype=dtype, device="meta")

    functions: dict[str, Any] = {
        "assert_size_stride": _restride,
        "assert_size_stride_grouped": _restride_all,
        "assert_tensor_metadata": _restride,
        "assert_alignment": _no_check,
    }
    functions |= {name: empty_strided for name in vars(code) if name.startswith("empty_strided")}
    return wrapper_functions(code, functions)


def _restride(tensor: torch.Tensor | None, size: Sequence[int], stride: Sequence[int], *_: Any) -> None:
    """Give a result the strides that the generated code asserts: a convolution of meta tensors returns others than the
    real one, in as many bytes, and the workspace of the convolution that reads them depends on them.

    From torch 2.14 on `assert_tensor_metadata` checks results, and the data type too; an optional result may be None.
    """
    if tensor is None or tensor.size() != tuple(size) or not tensor.numel():
        return
    last = tensor.storage_offset() + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True))
    if (last + 1) * tensor.element_size() <= tensor.untyped_storage().nbytes():
        tensor.as_strided_(size, stride)


def _restride_all(tensors: Sequence[torch.Tensor], sizes: Sequence[Any], strides: Sequence[Any], *_: Any) -> None:
    """The same for several tensors, which torch 2.14 and newer check with one call."""
    for tensor, size, stride in zip(tensors, sizes, strides, strict=True):
        _restride(tensor, size, stride)


def _no_check(*_: Any) -> None:
    pass


def lower_for_dry_run(
    gm: fx.GraphModule,
    inputs: int,
    inner: InnerCompile,
    modules: Modules,
    forward_outputs: int,
    mutated_inputs: int,
    static_inputs: Sequence[int],
) -> LoweredStep:
    """Generate the code of these modules, which partition the graph `gm` that Dynamo captured."""
    facts = StepMetadata(inputs, output_count(gm), forward_outputs, mutated_inputs, static_inputs)
    forward, backward = lower_step(modules, facts, inner)
    return LoweredStep(forward, backward, forward_outputs, torch.get_num_threads())
