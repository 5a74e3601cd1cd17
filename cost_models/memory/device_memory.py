"""What an allocation takes of a device beyond the bytes that were asked for, and what kernels take inside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch.utils._pytree import tree_leaves

from autockpt.cost_models.memory.allocator import CachingAllocator, allocated_bytes
from autockpt.cost_models.memory.workspace_cpu import workspace_bytes
from autockpt.cost_models.memory.workspace_cuda import cuda_workspace_bytes
from autockpt.cost_models.work import TensorSpec


class DeviceMemory(Protocol):
    @property
    def reserved_bytes(self) -> int: ...

    def size(self, nbytes: int) -> int:
        """What is counted as allocated."""

    def take(self, nbytes: int) -> Any:
        """A block, to be given back."""

    def give_back(self, block: Any) -> None: ...

    def scratch(self, func: Any, args: Any) -> int:
        """Bytes that a call allocates inside itself."""


def memory_of(examples: Iterable[Any], threads: int) -> DeviceMemory:
    """Of the device that a step with such arguments runs on."""
    tensors = (example for example in examples if isinstance(example, torch.Tensor))
    return HostMemory(threads) if all(tensor.device.type == "cpu" for tensor in tensors) else GpuMemory()


@dataclass(frozen=True)
class HostMemory:
    threads: int
    reserved_bytes: int = 0

    def size(self, nbytes: int) -> int:
        return nbytes

    def take(self, _: int) -> None:
        pass

    def give_back(self, _: None) -> None:
        pass

    def scratch(self, func: Any, args: Any) -> int:
        tensors, specs = _specs(args)
        merged = not tensors or tensors[0].ndim != 4 or tensors[0].transpose(1, 2).is_contiguous()
        return workspace_bytes(str(func), specs, self.threads, heads_merged=merged)


@dataclass(frozen=True)
class GpuMemory:
    allocator: CachingAllocator = field(default_factory=CachingAllocator)

    @property
    def reserved_bytes(self) -> int:
        return self.allocator.reserved_bytes

    def size(self, nbytes: int) -> int:
        return allocated_bytes(nbytes)

    def take(self, nbytes: int) -> Any:
        return self.allocator.allocate(nbytes)

    def give_back(self, block: Any) -> None:
        self.allocator.free(block)

    def scratch(self, func: Any, args: Any) -> int:
        return cuda_workspace_bytes(str(func), _specs(args)[1])


def _specs(args: Any) -> tuple[list[torch.Tensor], tuple[TensorSpec, ...]]:
    tensors = [value for value in tree_leaves(args) if isinstance(value, torch.Tensor)]
    specs = (TensorSpec(tuple(t.shape), str(t.dtype).removeprefix("torch."), t.element_size()) for t in tensors)
    return tensors, tuple(specs)
