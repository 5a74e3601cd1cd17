"""Streams, events, pinned memory and device memory of CUDA on the CPU: a copy is made as late as the events allow.

What a stream is given waits until somebody waits for it; only the computation, which runs on the CPU anyway, is at
once. So a result that is read without a wait is not there, and a source that is overwritten or freed before the wait
is copied as it is by then: memory of the device and of the host is NaN before it is written and after it is freed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from autockpt.offload import HostBlocks, cuda, operators
from autockpt.offload.cuda import CudaTransfers
from autockpt.offload.host_memory import _pin_for_cuda

DEVICE = torch.device("cuda", 0)
_HOST_MEMORY = import_module("autockpt.offload.host_memory")
"""By its name the package has the function."""


class Stream:
    """A copy engine: nothing runs before it is waited for, and then only that. A real one makes copies in turn, so that
    the wait for a later copy would hide that another wait is missing."""

    def __init__(self, device: torch.device = DEVICE) -> None:
        self.device = device
        self._given: list[Callable[[], None]] = []
        """Since the last event."""
        self._is_behind_computation = False

    def wait_stream(self, other: Stream) -> None:
        self._is_behind_computation = isinstance(other, Computation)
        self.wait_event(other.record_event())

    def wait_event(self, event: Event) -> None:
        self.give(event.reach)

    def record_event(self) -> Event:
        work, self._given = self._given, []
        return Event(work)

    def copy(self, source: int, written: int, nbytes: int) -> None:
        """Between two addresses: whatever the memory there holds when the copy is made."""
        assert self._is_behind_computation, "a copy may start before what it reads is computed"
        self._is_behind_computation = False
        self.give(partial(_move, written, source, nbytes))

    def give(self, work: Callable[[], None]) -> None:
        self._given.append(work)


def _move(written: int, source: int, nbytes: int) -> None:
    ctypes.memmove(written, source, nbytes)


class Computation(Stream):
    def give(self, work: Callable[[], None]) -> None:
        work()


@dataclass(frozen=True)
class Event:
    work: list[Callable[[], None]]
    """What a stream was given before it, and after the event before."""

    def reach(self) -> None:
        while self.work:
            self.work.pop(0)()

    synchronize = reach


class _Captured(TorchDispatchMode):
    """What is called on a side stream: copies between the device and pinned memory, of equal layouts."""

    def __init__(self, gpu: SimulatedGpu, stream: Stream) -> None:
        super().__init__()
        self._gpu, self._stream = gpu, stream

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not torch.ops.aten.copy_.default:
            return func(*args, **(kwargs or {}))
        written, source, non_blocking = args
        assert non_blocking
        assert (written.dtype, written.size(), written.stride()) == (source.dtype, source.size(), source.stride())
        if self._gpu.refusal == 0:
            assert self._gpu.is_pinned(written) != self._gpu.is_pinned(source)
        self._stream.copy(source.data_ptr(), written.data_ptr(), source.numel() * source.element_size())
        return written


@dataclass
class SimulatedGpu:
    """What `autockpt.offload.cuda` asks of CUDA."""

    refusal: int = 0
    """The error that pinning returns."""
    pinned: list[tuple[int, int]] = field(default_factory=list)
    """Address and bytes, in the order of the calls."""
    last_error: int = 0
    """As CUDA keeps it until somebody asks, which the check after every kernel launch does."""
    memory: HostBlocks = field(default_factory=HostBlocks)
    """Of the device."""
    host: HostBlocks = field(default_factory=lambda: HostBlocks(partial(_pin_for_cuda, DEVICE.index)))
    transfers: CudaTransfers = field(init=False)

    def __post_init__(self) -> None:
        self.memory.poison = self.host.poison = True
        self.restart()

    def restart(self) -> None:
        """Forget what was started and never waited for."""
        self._computation = Computation()
        self._current: Stream = self._computation
        with patch.object(torch.cuda, "Stream", Stream), self._host_memory():
            self.transfers = _Transfers(self)

    @property
    def pinned_bytes(self) -> int:
        return sum(nbytes for _, nbytes in self.pinned)

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        return any(start <= tensor.data_ptr() < start + nbytes for start, nbytes in self.pinned)

    def empty_strided(self, size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
        """NaN, or zeros: integers have no NaN, and are indices."""
        shape = torch.empty_strided(size, stride, dtype=dtype, device="meta")
        storage = shape.untyped_storage().nbytes()
        flat = self.memory.empty_like(torch.empty(storage, dtype=torch.uint8, device="meta"))
        if not dtype.is_floating_point:
            flat.zero_()
        # Not a view: nothing but the storage is shared with what was allocated.
        return torch.empty(0, dtype=dtype).set_(flat.untyped_storage(), 0, shape.size(), shape.stride())

    @contextmanager
    def pins(self) -> Iterator[None]:
        """While a step is compiled, which maps and pins the memory of its plan."""
        cuda_calls = {"cudart": lambda: self, "device": lambda _: nullcontext()}
        with (
            patch.multiple(torch.cuda, **cuda_calls),
            patch.object(_HOST_MEMORY, "_launch", self.launch),
            self._host_memory(),
        ):
            yield

    @contextmanager
    def _host_memory(self) -> Iterator[None]:
        with patch.multiple(_HOST_MEMORY, host_memory=self._host), patch.multiple(cuda, host_memory=self._host):
            yield

    def _host(self, kind: str, index: int = 0) -> HostBlocks:
        assert torch.device(kind, index) == DEVICE
        return self.host

    def cudaHostRegister(self, address: int, nbytes: int, flags: int) -> int:  # noqa: N802 - CUDA's name
        if not self.refusal:
            self.pinned.append((address, nbytes))
        self.last_error = self.refusal
        return self.refusal

    def launch(self, *_: Any, **__: Any) -> None:
        error, self.last_error = self.last_error, 0
        if error:
            raise RuntimeError(f"CUDA error: {error}")

    @contextmanager
    def runs(self) -> Iterator[None]:
        """The operators copy by these streams, whatever device their tensors say they are on."""
        replaced = {
            "current_stream": lambda device=None: self._current,
            "stream": self._on,
            "is_current_stream_capturing": lambda: False,
        }
        with (
            self.pins(),
            patch.multiple(torch.cuda, **replaced),
            patch.object(operators, "transfers", lambda _: self.transfers),
        ):
            yield

    @contextmanager
    def _on(self, stream: Stream) -> Iterator[None]:
        before, self._current = self._current, stream
        try:
            with _Captured(self, stream):
                yield
        finally:
            self._current = before


class _Transfers(CudaTransfers):
    """Of autockpt, but for where a device's tensor comes from."""

    def __init__(self, gpu: SimulatedGpu) -> None:
        super().__init__(DEVICE)
        self._gpu = gpu

    def empty_on_device(self, host: torch.Tensor) -> torch.Tensor:
        return self._gpu.empty_strided(host.size(), host.stride(), host.dtype)
