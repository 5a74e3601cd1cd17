"""Meta tensors in the place of real ones, and the bytes that their storages would take: what a dry run counts."""

from __future__ import annotations

import linecache
import sys
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from autockpt.cost_models.formulas import number_at
from autockpt.cost_models.memory import DeviceMemory
from autockpt.inductor.fake.no_kernels import NotLowered, is_generated
from autockpt.offload import OFFLOAD
from autockpt.passes.sizes import Sizes

_READS_NUMBER = (torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default)
_ITERATIONS = 2
"""Of a `while_loop`: the second one holds what the first one has carried to it, as all others do."""
_LOOP_BODY = "while_loop_body"
"""Begins the names of functions that Inductor generates for the bodies of `while_loop` and `scan`."""


class LoopIndex(int):
    """A number that the body of a loop reads from memory: the row that an iteration is at. As an offset every row is
    alike; as a size it would have to be known, so `checked_size` refuses it and what is computed from it."""


def _index_after(operation: Callable[..., int]) -> Callable[..., LoopIndex]:
    return lambda *numbers: LoopIndex(operation(*map(int, numbers)))


for _name in ("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__floordiv__", "__mod__"):
    setattr(LoopIndex, _name, _index_after(getattr(int, _name)))


def checked_size(size: Sequence[int]) -> Sequence[int]:
    if any(isinstance(extent, LoopIndex) for extent in size):
        raise NotLowered("a size inside of a loop depends on data")
    return size


class Predicates:
    """Answers for generated code that asks for a truth value that is data: which branch runs, whether to loop.

    Both branches of a `cond` return as many bytes, so of all combinations of branches one of the two extremes, every
    predicate true or every one false, has the highest peak.
    """

    def __init__(self, holds: bool) -> None:
        self.were_asked = False
        self._holds = holds
        self._iterations: dict[tuple[str, int], int] = {}
        """Of the loops that are running, by their line."""

    def __call__(self, frame: FrameType) -> bool:
        self.were_asked = True
        frame = _generated(frame)
        place = frame.f_code.co_filename, frame.f_lineno
        if not self._holds or not linecache.getline(*place).strip().startswith("while "):
            return self._holds
        done = self._iterations.pop(place, 0)
        if done < _ITERATIONS:
            self._iterations[place] = done + 1
        return done < _ITERATIONS


def _generated(frame: FrameType) -> FrameType:
    """The innermost frame of generated code."""
    while not is_generated(frame.f_globals) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _in_loop(frame: FrameType) -> bool:
    return _generated(frame).f_code.co_name.startswith(_LOOP_BODY)


class MetaStorages(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class has no hints
    """Counts the bytes of every storage from its allocation until its last reference is gone."""

    def __init__(self, memory: DeviceMemory, sizes: Sizes | None, predicates: Predicates) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self.now = self.peak = 0
        self.host_now = self.host_peak = 0
        """Bytes on the host, counted apart."""
        self.timeline: list[int] = []
        self.workspace: tuple[str, int] | None = None
        self._memory, self._sizes, self._predicates = memory, sizes, predicates
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

    def _count_on_host(self, storage: torch.UntypedStorage) -> None:
        self._known[storage._cdata] = 0, None
        self.host_now += storage.nbytes()
        self.host_peak = max(self.host_peak, self.host_now)
        weakref.finalize(storage, self._freed_on_host, storage._cdata, storage.nbytes())

    def _freed_on_host(self, key: int, nbytes: int) -> None:
        del self._known[key]
        self.host_now -= nbytes

    def _grow(self, nbytes: int, workspace: tuple[str, int] | None) -> None:
        self.now += nbytes
        self.timeline.append(self.now)
        if self.now > self.peak:
            self.peak, self.workspace = self.now, workspace

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _READS_NUMBER and args[0].dtype is torch.bool and args[0].is_meta:
            return self._predicates(sys._getframe(1))
        if func in _READS_NUMBER and args[0].dtype is torch.int64 and _in_loop(sys._getframe(1)):
            return LoopIndex()
        if func is torch.ops.aten.stack.default:
            raise NotLowered("a `while_loop` saves the results of all its iterations, whose number is data")
        result = func(*args, **(kwargs or {}))
        if func is OFFLOAD:
            self._count_on_host(result.untyped_storage())
        for value in tree_leaves(result):
            self.count(value)
        if scratch := self._memory.workspace_bytes(func, args):
            self._grow(scratch, (str(func), scratch))
            self.now -= scratch
            self._memory.free(self._memory.allocate(scratch))
        return result
