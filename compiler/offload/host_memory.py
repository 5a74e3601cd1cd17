"""Host memory for offloaded tensors, mapped once and used again: torch's allocators neither see nor count it.

On the CPU the device is the host, too. A budget for the device can be checked there only if what waits on the host is
counted apart, so that it comes from mappings of our own, not from torch's allocator. For a GPU the same mappings are
pinned (`cudaHostRegister`), which takes milliseconds, so blocks are kept: a plan's blocks are mapped when it is
compiled. Blocks have the bytes that were asked for, in whole pages; torch's pinned allocator rounds up to a power of 2.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial

import torch

POISON = 0xFF
"""As a byte of any floating dtype this is a NaN."""
_NOT_PINNED = (
    "autockpt: {size:,} bytes of host memory could not be pinned ({reason}); offloaded tensors are copied to pageable "
    "memory, which is slower and does not overlap. Raise the limit of locked memory (ulimit -l), or set `offload` to a "
    "smaller size"
)
Pin = Callable[[int, int], str]
"""Pins so many bytes at an address; returns why it could not, or nothing."""


class HostBlocks:
    """The blocks of one device. Every tensor that is taken holds one block until its storage is freed."""

    def __init__(self, pin: Pin | None = None) -> None:
        self.poison = False
        """Whether blocks are filled with NaN when they are taken and given back: a copy that is read too early or too
        late then shows. For tests."""
        self._pin = pin
        self._free: dict[int, list[mmap.mmap]] = {}
        self._taken: dict[int, int] = {}
        """Bytes by address."""
        self._mapped_bytes = 0
        # Blocks come back from finalizers, which may run while this thread holds the lock.
        self._lock = threading.RLock()

    @property
    def taken_bytes(self) -> int:
        """In tensors that are alive."""
        return sum(self._taken.values())

    @property
    def mapped_bytes(self) -> int:
        """Taken, or free to be taken again."""
        return self._mapped_bytes

    def has(self, address: int) -> bool:
        return address in self._taken

    def reserve(self, sizes: Iterable[int]) -> None:
        """Map as many blocks as tensors of these sizes need at once, so that no step has to."""
        for size, count in Counter(_rounded(size) for size in sizes).items():
            with self._lock:
                blocks = self._free.setdefault(size, [])
                blocks.extend(self._map(size) for _ in range(count - len(blocks)))

    def empty_like(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor on the host with the shape, strides and dtype of this one, which must be dense."""
        nbytes = tensor.numel() * tensor.element_size()
        if not nbytes:
            return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
        flat = torch.frombuffer(self._take(nbytes), dtype=torch.uint8, count=nbytes)
        return flat.view(tensor.dtype).as_strided(tensor.size(), tensor.stride())

    def _take(self, nbytes: int) -> ctypes.Array[ctypes.c_char]:
        size = _rounded(nbytes)
        with self._lock:
            blocks = self._free.setdefault(size, [])
            block = blocks.pop() if blocks else self._map(size)
            # torch holds this object as long as a storage uses the block.
            memory = (ctypes.c_char * size).from_buffer(block)
            address = ctypes.addressof(memory)
            self._taken[address] = size
        if self.poison:
            ctypes.memset(address, POISON, size)
        weakref.finalize(memory, self._give_back, block, address, size).atexit = False
        return memory

    def _give_back(self, block: mmap.mmap, address: int, size: int) -> None:
        with self._lock:
            if self.poison:
                ctypes.memset(address, POISON, size)
            del self._taken[address]
            self._free[size].append(block)

    def _map(self, size: int) -> mmap.mmap:
        block = mmap.mmap(-1, size)
        self._mapped_bytes += size
        if self._pin is not None:
            reason = self._pin(ctypes.addressof(ctypes.c_char.from_buffer(block)), size)
            if reason:
                self._pin = None
                warnings.warn(_NOT_PINNED.format(size=size, reason=reason), RuntimeWarning, stacklevel=2)
        return block


def _rounded(nbytes: int) -> int:
    return -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE


def host_memory(kind: str, index: int = 0) -> HostBlocks:
    """Of a device by its type and index, the same for every caller."""
    return _host_memory(kind, index)


@cache
def _host_memory(kind: str, index: int) -> HostBlocks:
    memory = HostBlocks(partial(_pin_for_cuda, index) if kind == "cuda" else None)
    _MEMORIES.append(memory)
    return memory


_MEMORIES: list[HostBlocks] = []


def is_host_memory(address: int) -> bool:
    """Whether a tensor at this address waits on the host, and takes no memory of a device."""
    return any(memory.has(address) for memory in _MEMORIES)


def prepare(device: torch.device, sizes: Iterable[int]) -> None:
    """Map, and on CUDA pin, the memory of a plan that offloads tensors of these sizes, unless it is there."""
    host_memory(device.type, device.index or 0).reserve(sizes)


def _pin_for_cuda(index: int, address: int, size: int) -> str:
    """Memory is pinned for all devices of a process (portable), whichever of them is current."""
    with torch.cuda.device(index):
        error = int(torch.cuda.cudart().cudaHostRegister(address, size, 1))  # type: ignore[no-untyped-call]
        if error == 0:
            return ""
        _clear_error(index)
    return f"cudaHostRegister: error {error}"


def _clear_error(index: int) -> None:
    """CUDA keeps the error, and torch would raise it at the next kernel, as "out of memory" on an empty device. The
    check after a launch clears it. An error that cannot be cleared is raised at the next launch again."""
    with suppress(RuntimeError):
        _launch(index)


def _launch(index: int) -> None:
    torch.zeros(1, device=torch.device("cuda", index))
