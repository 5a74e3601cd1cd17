"""Meta tensors in the place of real ones, and the bytes that their storages would take: what a dry run counts."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from autockpt.cost_models.formulas import number_at
from autockpt.cost_models.memory import DeviceMemory
from autockpt.offload import OFFLOAD
from autockpt.passes.sizes import Sizes


class MetaStorages(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class has no hints
    """Counts the bytes of every storage from its allocation until its last reference is gone."""

    def __init__(self, memory: DeviceMemory, sizes: Sizes | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self.now = self.peak = 0
        self.host_now = self.host_peak = 0
        """Bytes on the host, counted apart."""
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
