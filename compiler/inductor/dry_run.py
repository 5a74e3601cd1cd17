"""Run the generated wrappers of a step on tensors without memory, and count storages as they come and go.

Exact for what Inductor allocates, on any machine, for a device that is not here: the wrapper is the real one, its
order of allocations and frees is the real one, only kernels do nothing. What an allocation takes beyond its bytes, and
what an extern kernel allocates inside itself, is added by `device_memory.py`, the latter with its name.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from autockpt.cost_models.memory import DeviceMemory, GpuMemory, memory_of
from autockpt.inductor.aot import Modules
from autockpt.inductor.codegen import StepMetadata, Wrapper, lower_step, outputs_of
from autockpt.inductor.scheduler import InnerCompile


@dataclass(frozen=True)
class DryRun:
    """What the generated code of a step allocates, above its parameters and inputs."""

    peak_bytes: int
    in_backward: bool
    """Whether the peak is there."""
    saved_bytes: int
    """Live between the two passes."""
    workspace: tuple[str, int] | None
    """The kernel at the peak that allocates inside itself, and how much of the peak that is."""
    reserved_bytes: int = 0
    """What torch's allocator takes from a GPU for it all, parameters and inputs too: segments, not tensors."""


def dry_run(forward: Wrapper, backward: Wrapper, forward_outputs: int, threads: int) -> DryRun:
    """One step: the forward, then the backward, which lets go of what was saved as it goes."""
    memory = memory_of(forward.examples, threads)
    live = _Live(memory)
    with unset_fake_temporarily(), live, _counted(forward.code, live), _counted(backward.code, live):
        inputs = [live.given(example) for example in forward.examples]
        results = list(forward.code.call(list(inputs)))
        saved_bytes, first_peak = live.now, live.peak
        values = dict(zip(forward.results, results, strict=True))
        held = results[:forward_outputs]
        tangents = {
            name: live.made(live.blank(example))
            for name, example in zip(backward.arguments, backward.examples, strict=True)
            if name not in values
        }
        arguments = [values[name] if name in values else tangents[name] for name in backward.arguments]
        if isinstance(memory, GpuMemory):
            # Whoever calls the backward holds the tangents until it returns, unless they were copied for it. On the
            # CPU that is measured; for a GPU, on the safe side.
            held += tangents.values()
        del results, values, tangents
        gradients = backward.code.call(arguments)
        del held, gradients, inputs
    return DryRun(live.peak, live.peak > first_peak, saved_bytes, live.workspace, memory.reserved_bytes)


class _Live(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class has no hints
    """Counts every storage from the moment it is made until nobody holds it."""

    def __init__(self, memory: DeviceMemory) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self.now = self.peak = 0
        self.workspace: tuple[str, int] | None = None
        self._memory = memory
        self._known: dict[int, tuple[int, Any]] = {}
        """Bytes that count, and the block that they are in."""

    def given(self, example: Any) -> Any:
        """An argument that is counted elsewhere."""
        value = self.blank(example)
        if isinstance(value, torch.Tensor):
            self._track(value.untyped_storage(), 0)
        return value

    def blank(self, example: Any) -> Any:
        if not isinstance(example, torch.Tensor):
            return _hint(example)
        size, stride = [_hint(s) for s in example.size()], [_hint(s) for s in example.stride()]
        with _disable_current_modes():
            return torch.empty_strided(size, stride, dtype=example.dtype, device="meta")

    def made(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        storage = value.untyped_storage()
        if storage._cdata not in self._known:
            nbytes = self._memory.size(storage.nbytes())
            self._track(storage, nbytes)
            self._grow(nbytes, None)
        return value

    def _track(self, storage: torch.UntypedStorage, nbytes: int) -> None:
        self._known[storage._cdata] = nbytes, self._memory.take(storage.nbytes())
        weakref.finalize(storage, self._gone, storage._cdata)

    def _gone(self, key: int) -> None:
        nbytes, block = self._known.pop(key, (0, None))
        self.now -= nbytes
        self._memory.give_back(block)

    def _grow(self, nbytes: int, workspace: tuple[str, int] | None) -> None:
        self.now += nbytes
        if self.now > self.peak:
            self.peak, self.workspace = self.now, workspace

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in tree_leaves(result):
            self.made(value)
        if scratch := self._memory.scratch(func, args):
            self._grow(scratch, (str(func), scratch))
            self.now -= scratch
            self._memory.give_back(self._memory.take(scratch))
        return result


def _hint(number: Any) -> Any:
    """A symbolic size as the number it had when it was traced."""
    return number.node.hint if isinstance(number, torch.SymInt | torch.SymFloat) else number


@contextmanager
def _counted(code: ModuleType, live: _Live) -> Iterator[None]:
    """Make the wrapper allocate tensors without memory, counted."""

    def empty_strided(size: Any, stride: Any, dtype: torch.dtype, *_: Any, **__: Any) -> Any:
        return torch.empty_strided(size, stride, dtype=dtype, device="meta")

    # A convolution without memory does not choose the strides that the real one does; the bytes are the same.
    stand_ins: dict[str, Any] = {"assert_size_stride": _pass, "assert_alignment": _pass}
    stand_ins |= {name: empty_strided for name in vars(code) if name.startswith("empty_strided")}
    with patch.multiple(code, create=True, **stand_ins):
        yield


def _pass(*_: Any) -> None:
    pass


def dry_run_step(
    gm: fx.GraphModule,
    inputs: int,
    inner: InnerCompile,
    modules: Modules,
    forward_outputs: int,
    mutated_inputs: int,
    static_inputs: Sequence[int],
) -> DryRun:
    """The step that Inductor makes of these modules, run dry."""
    joint = StepMetadata(inputs, outputs_of(gm), forward_outputs, mutated_inputs, static_inputs)
    forward, backward = lower_step(modules, joint, inner)
    return dry_run(forward, backward, forward_outputs, torch.get_num_threads())
