"""Copies of a CUDA device: one side stream for each direction, and an event for each copy.

A side stream waits for the computation at the moment a copy starts: what it reads is written by then, and nobody uses
the memory that it writes any more. `wait` lets the computation wait for the event of the copy. Freeing the source
afterwards is safe without `record_stream`: memory that torch's allocator hands out again is used by later kernels of
the computation, and these run behind the event. Host memory is another matter: it may be taken again by a computation
on another stream, so that a copy out waits for the last copy in that read this memory.
"""

from __future__ import annotations

import torch

from autockpt.offload.host_memory import host_memory
from autockpt.offload.transfers import StartedCopy, Transfers


class CudaCopy:
    def __init__(self, stream: torch.cuda.Stream, source: torch.Tensor, written: torch.Tensor) -> None:
        self._stream = stream
        stream.wait_stream(torch.cuda.current_stream(stream.device))
        with torch.cuda.stream(stream):
            written.copy_(source, non_blocking=True)
            self.done = stream.record_event()

    def wait(self) -> None:
        torch.cuda.current_stream(self._stream.device).wait_event(self.done)

    def abandon(self) -> None:
        """After an exception, or where a result is dropped unread: rare, so the process waits."""
        self.done.synchronize()


class CudaTransfers(Transfers):
    def __init__(self, device: torch.device) -> None:
        super().__init__(host_memory(device.type, device.index))
        self._device = device
        self._out = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._in = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._read: dict[int, torch.cuda.Event] = {}
        """By address of the host: the last copy in from there. One entry a block, of which there are few."""

    def copy_out(self, source: torch.Tensor) -> torch.Tensor:
        _refuse_capture()
        return super().copy_out(source)

    def start_out(self, source: torch.Tensor, host: torch.Tensor) -> StartedCopy:
        if read := self._read.pop(host.data_ptr(), None):
            self._out.wait_event(read)
        return CudaCopy(self._out, source, host)

    def start_in(self, host: torch.Tensor, copied: torch.Tensor) -> StartedCopy:
        copy = CudaCopy(self._in, host, copied)
        self._read[host.data_ptr()] = copy.done
        return copy

    def empty_on_device(self, host: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(host.size(), host.stride(), dtype=host.dtype, device=self._device)


def _refuse_capture() -> None:
    """A CUDA graph replays fixed addresses, and host memory is another at every call."""
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("autockpt::offload cannot be captured in a CUDA graph; set offload=False")
