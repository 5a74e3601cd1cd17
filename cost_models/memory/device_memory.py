"""How a device counts memory: bytes taken by an allocation, by the allocator's segments, and by kernels themselves.

A dry run replays the allocations of generated code against one of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch.utils._pytree import tree_leaves

from autockpt.cost_models.memory.allocator import CachingAllocator, allocated_bytes
from autockpt.cost_models.memory.workspace_cpu import workspace_bytes
from autockpt.cost_models.memory.workspace_cuda import cuda_workspace_bytes
from autockpt.cost_models.memory.workspace_measured import measured_workspace
from autockpt.cost_models.work import TensorSpec


class DeviceMemory(Protocol):
    @property
    def reserved_bytes(self) -> int:
        """Bytes that the allocator has taken from the device so far."""

    def allocated_bytes(self, nbytes: int) -> int:
        """Bytes counted for a storage of `nbytes`."""

    def allocate(self, nbytes: int) -> Any:
        """A block, to be passed to `free`."""

    def free(self, block: Any) -> None: ...

    def workspace_bytes(self, operator: Any, arguments: Any) -> int:
        """Bytes that the kernel of this call allocates and frees before it returns."""


def memory_of(examples: Iterable[Any], threads: int) -> DeviceMemory:
    """The memory of the device on which these example arguments are; `threads` matter on the CPU only."""
    tensors = (example for example in examples if isinstance(example, torch.Tensor))
    return HostMemory(threads) if all(tensor.device.type == "cpu" for tensor in tensors) else GpuMemory()


@dataclass(frozen=True)
class HostMemory:
    """Counts storages exactly; the C library's allocator is not modelled."""

    threads: int
    reserved_bytes: int = 0

    def allocated_bytes(self, nbytes: int) -> int:
        return nbytes

    def allocate(self, _: int) -> None:
        pass

    def free(self, _: None) -> None:
        pass

    def workspace_bytes(self, operator: Any, arguments: Any) -> int:
        measured = measured_workspace(operator, arguments)
        if measured is not None:
            return measured
        tensors, specs = _specs(arguments)
        merged = not tensors or tensors[0].ndim != 4 or tensors[0].transpose(1, 2).is_contiguous()
        return workspace_bytes(str(operator), specs, self.threads, heads_merged=merged)


@dataclass(frozen=True)
class GpuMemory:
    """Counts blocks and segments of torch's caching allocator."""

    allocator: CachingAllocator = field(default_factory=CachingAllocator)

    @property
    def reserved_bytes(self) -> int:
        return self.allocator.reserved_bytes

    def allocated_bytes(self, nbytes: int) -> int:
        return allocated_bytes(nbytes)

    def allocate(self, nbytes: int) -> Any:
        return self.allocator.allocate(nbytes)

    def free(self, block: Any) -> None:
        self.allocator.free(block)

    def workspace_bytes(self, operator: Any, arguments: Any) -> int:
        return cuda_workspace_bytes(str(operator), _specs(arguments)[1])


def _specs(arguments: Any) -> tuple[list[torch.Tensor], tuple[TensorSpec, ...]]:
    tensors = [value for value in tree_leaves(arguments) if isinstance(value, torch.Tensor)]
    specs = (TensorSpec(tuple(t.shape), str(t.dtype).removeprefix("torch."), t.element_size()) for t in tensors)
    return tensors, tuple(specs)
