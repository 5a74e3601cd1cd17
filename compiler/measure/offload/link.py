"""Time copies to the host and back by the operators of autockpt, on all given devices at once.

A thread serves each device. Before every reading all of them meet at a barrier, and the slowest device counts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import torch

from autockpt.cost_models.calibration import IN, OUT, CalibratedLink, MeasuredCopy, fit_host_link
from autockpt.offload import OFFLOAD, RELOAD, WAIT, host_memory
from autockpt.units import Progress, format_size

_BYTES = tuple(2**power for power in range(16, 27, 2))
"""Of the copied tensors: 64 KiB to 64 MiB."""
READINGS = 5
Clock = Callable[[], float]


class Copier(Protocol):
    """Copies of one device, each complete when its call returns."""

    def pin(self, sizes: Sequence[int]) -> None:
        """Map and pin host memory for tensors of so many bytes."""

    def copies(self, nbytes: int) -> dict[str, Callable[[], object]]:
        """By direction a call that copies so many bytes."""


class DeviceCopier:
    def __init__(self, device: torch.device) -> None:
        self._device = device

    def pin(self, sizes: Sequence[int]) -> None:
        host_memory(self._device.type, self._device.index or 0).reserve(sizes)

    def copies(self, nbytes: int) -> dict[str, Callable[[], object]]:
        source = torch.zeros(nbytes, dtype=torch.uint8, device=self._device)
        host = self._waited(lambda: WAIT(OFFLOAD(source), source))
        return {
            OUT: lambda: self._waited(lambda: WAIT(OFFLOAD(source), source)),
            IN: lambda: self._waited(lambda: WAIT(RELOAD(host, self._device), host)),
        }

    def _waited(self, copy: Callable[[], torch.Tensor]) -> torch.Tensor:
        copied = copy()
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return copied


def time_host_link(
    copiers: Sequence[Copier], progress: Progress = lambda _: None, clock: Clock = time.perf_counter
) -> CalibratedLink:
    """Of the devices of these copiers, which copy at once."""
    # One block is the source of copies in, the other is written by copies out.
    sizes = [size for size in _BYTES for _ in range(2)]
    started = clock()
    for copier in copiers:
        copier.pin(sizes)
    pinned = sum(sizes) * len(copiers) / max(clock() - started, 1e-9)
    found = []
    for nbytes in _BYTES:
        progress(f"copies of {format_size(nbytes)} on {len(copiers)} devices")
        calls = [copier.copies(nbytes) for copier in copiers]
        for direction in (OUT, IN):
            seconds = _together([each[direction] for each in calls], clock)
            found.append(MeasuredCopy(direction, nbytes, seconds))
    return fit_host_link(found, pinned, len(copiers))


def _together(calls: Sequence[Callable[[], object]], clock: Clock) -> float:
    """Seconds of the slowest of these calls, in the quietest of several readings, all begun at the same moment."""
    barrier = threading.Barrier(len(calls))

    def read(call: Callable[[], object]) -> list[float]:
        try:
            call()
            readings = []
            for _ in range(READINGS):
                barrier.wait()
                started = clock()
                call()
                readings.append(clock() - started)
            return readings
        except BaseException:
            # The others would wait for this one for ever.
            barrier.abort()
            raise

    with ThreadPoolExecutor(len(calls)) as pool:
        readings = [future.result() for future in [pool.submit(read, call) for call in calls]]
    return float(min(max(each) for each in zip(*readings, strict=True)))
