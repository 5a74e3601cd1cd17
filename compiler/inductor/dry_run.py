"""Run the generated code of a step on meta tensors, and count the bytes of live storages: the compiled peak.

The wrapper code and its order of allocations and frees are those of the real step; only kernels do nothing. So the
count is exact for everything that Inductor allocates, on any machine, also for a device that is not here. What an
allocation takes beyond its bytes (alignment), and the workspaces that extern kernels allocate inside themselves, are
added by `cost_models.memory`.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from autockpt.cost_models.formulas import number_at
from autockpt.cost_models.memory import DeviceMemory, GpuMemory, memory_of
from autockpt.inductor.aot import Modules
from autockpt.inductor.codegen import StepMetadata, Wrapper, lower_step, output_count
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
    """One step: the forward, then the backward, which frees saved values after their last use."""
    memory = memory_of(forward.examples, threads)
    live = _LiveBytes(memory, sizes)
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
        timeline=tuple(live.timeline),
    )


class _LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class has no hints
    """Counts the bytes of every storage from its allocation until its last reference is gone."""

    def __init__(self, memory: DeviceMemory, sizes: Sizes | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self.now = self.peak = 0
        self.timeline: list[int] = []
        self.workspace: tuple[str, int] | None = None
        self._memory, self._sizes = memory, sizes
        self._known: dict[int, tuple[int, Any]] = {}
        """By storage: its bytes in `now`, and its block in the device's memory."""

    def graph_input(self, example: Any) -> Any:
        """A meta tensor for an input of the step, which is not counted."""
        value = self.meta(example)
        if isinstance(value, torch.Tensor):
            self._track(value.untyped_storage(), 0)
        return value

    def meta(self, example: Any) -> Any:
        if not isinstance(example, torch.Tensor):
            return self._number(example)
        size, stride = (list(map(self._number, numbers)) for numbers in (example.size(), example.stride()))
        with _disable_current_modes():
            return torch.empty_strided(size, stride, dtype=example.dtype, device="meta")

    def count(self, value: Any) -> Any:
        """Count the value's storage, unless it is known already."""
        if not isinstance(value, torch.Tensor):
            return value
        storage = value.untyped_storage()
        if storage._cdata not in self._known:
            nbytes = self._memory.allocated_bytes(storage.nbytes())
            self._track(storage, nbytes)
            self._grow(nbytes, None)
        return value

    def _number(self, number: Any) -> Any:
        """A symbolic size at the sizes of this run, or as it was traced."""
        if isinstance(number, torch.SymInt) and self._sizes is not None:
            return int(number_at(number.node.expr, self._sizes))
        return number.node.hint if isinstance(number, torch.SymInt | torch.SymFloat) else number

    def _track(self, storage: torch.UntypedStorage, nbytes: int) -> None:
        self._known[storage._cdata] = nbytes, self._memory.allocate(storage.nbytes())
        weakref.finalize(storage, self._freed, storage._cdata)

    def _freed(self, key: int) -> None:
        nbytes, block = self._known.pop(key, (0, None))
        self.now -= nbytes
        self._memory.free(block)

    def _grow(self, nbytes: int, workspace: tuple[str, int] | None) -> None:
        self.now += nbytes
        self.timeline.append(self.now)
        if self.now > self.peak:
            self.peak, self.workspace = self.now, workspace

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in tree_leaves(result):
            self.count(value)
        if scratch := self._memory.workspace_bytes(func, args):
            self._grow(scratch, (str(func), scratch))
            self.now -= scratch
            self._memory.free(self._memory.allocate(scratch))
        return result


def _allocating_meta(code: ModuleType) -> AbstractContextManager[None]:
    """Make a generated wrapper allocate meta tensors, which the dispatch mode counts."""

    def empty_strided(size: Any, stride: Any, dtype: torch.dtype, *_: Any, **__: Any) -> Any:
        return torch.empty_strided(size, stride, dtype=dtype, device="meta")

    # No checks of strides: a convolution of meta tensors may return other strides than the real one, in as many bytes.
    functions: dict[str, Any] = {"assert_size_stride": _no_check, "assert_alignment": _no_check}
    functions |= {name: empty_strided for name in vars(code) if name.startswith("empty_strided")}
    return wrapper_functions(code, functions)


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
