"""Copies under way between a device and the host: on CUDA on two side streams, on the CPU by two worker threads.

A copy is found by the memory that it writes. Its entry holds its source until somebody waits for it, so that nothing
is freed or overwritten while it is read: no `record_stream`, which fragments the allocator, and no resized storages.
Where the written tensor dies without anybody having waited, after an exception, its entry goes with it.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Protocol

import torch

from autockpt.offload.engine import Engine
from autockpt.offload.host_memory import POISON, HostBlocks, host_memory


class StartedCopy(Protocol):
    """One copy that was started, on the CPU or on a GPU."""

    def wait(self) -> None:
        """Return when what follows in program order may read its result and free its source."""

    def abandon(self) -> None:
        """Nobody will wait: return when it touches neither source nor result any more."""


class Transfers:
    """Of one device. Each direction is served by one engine, in the order in which copies are started."""

    def __init__(self, memory: HostBlocks) -> None:
        self._memory = memory
        self._under_way: dict[int, tuple[StartedCopy, torch.Tensor]] = {}
        """By the address that is written: the copy, and its source."""
        self._lock = threading.RLock()

    def copy_out(self, source: torch.Tensor) -> torch.Tensor:
        host = self._memory.empty_like(source)
        return self._started(self.start_out(source, host), source, host) if host.numel() else host

    def copy_in(self, host: torch.Tensor) -> torch.Tensor:
        copied = self.empty_on_device(host)
        return self._started(self.start_in(host, copied), host, copied) if host.numel() else copied

    def wait(self, copied: torch.Tensor) -> None:
        if not copied.numel():
            return
        with self._lock:
            found = self._under_way.pop(copied.data_ptr(), None)
        if found is None:
            raise RuntimeError("autockpt::wait: no copy into this tensor was started, or it was waited for already")
        found[0].wait()

    @property
    def under_way(self) -> int:
        """Copies that were started and that nobody has waited for."""
        return len(self._under_way)

    def _started(self, copy: StartedCopy, source: torch.Tensor, written: torch.Tensor) -> torch.Tensor:
        address = written.data_ptr()
        with self._lock:
            self._under_way[address] = copy, source
        # A result that is dropped unread takes its entry along: its memory may be allocated again at this address.
        weakref.finalize(written.untyped_storage(), self._dropped, address, copy).atexit = False
        return written

    def _dropped(self, address: int, copy: StartedCopy) -> None:
        with self._lock:
            found = self._under_way.get(address)
            if found is None or found[0] is not copy:
                return
            del self._under_way[address]
        copy.abandon()

    def start_out(self, source: torch.Tensor, host: torch.Tensor) -> StartedCopy:
        raise NotImplementedError

    def start_in(self, host: torch.Tensor, copied: torch.Tensor) -> StartedCopy:
        raise NotImplementedError

    def empty_on_device(self, host: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class CpuTransfers(Transfers):
    """Two worker threads. Copies run beside the computation, so a missing wait is a real race here, too."""

    def __init__(self) -> None:
        super().__init__(host_memory("cpu"))
        self.engines = Engine("autockpt-copy-out"), Engine("autockpt-copy-in")

    def start_out(self, source: torch.Tensor, host: torch.Tensor) -> StartedCopy:
        return self.engines[0].start(source, host)

    def start_in(self, host: torch.Tensor, copied: torch.Tensor) -> StartedCopy:
        return self.engines[1].start(host, copied)

    def empty_on_device(self, host: torch.Tensor) -> torch.Tensor:
        copied = torch.empty_strided(host.size(), host.stride(), dtype=host.dtype)
        if self._memory.poison:
            ctypes.memset(copied.data_ptr(), POISON, copied.numel() * copied.element_size())
        return copied


@cache
def _transfers(kind: str, index: int) -> Transfers:
    if kind == "cpu":
        return CpuTransfers()
    if kind != "cuda":
        raise RuntimeError(f"autockpt::offload: device {kind!r} is not supported; set offload=False")
    # Here, because it makes streams.
    from autockpt.offload.cuda import CudaTransfers

    return CudaTransfers(torch.device(kind, index))


def transfers(device: torch.device) -> Transfers:
    """The copies of a device, the same for every caller."""
    if device.type == "cuda" and device.index is None:
        return _transfers(device.type, torch.cuda.current_device())
    return _transfers(device.type, device.index or 0)


def drain() -> None:
    """Return when the worker threads of the CPU have nothing left to copy."""
    for engine in _cpu().engines:
        engine.drain()


@contextmanager
def slowed(seconds: float) -> Iterator[None]:
    """Every copy of the CPU waits so long before it starts: a race that is possible then happens. For tests."""
    engines = _cpu().engines
    for engine in engines:
        engine.delay_seconds = seconds
    try:
        yield
    finally:
        drain()
        for engine in engines:
            engine.delay_seconds = 0.0


def _cpu() -> CpuTransfers:
    found = transfers(torch.device("cpu"))
    assert isinstance(found, CpuTransfers)
    return found
