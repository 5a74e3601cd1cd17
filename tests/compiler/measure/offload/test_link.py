"""Timed copies: real ones of the CPU's worker threads, and several devices at once by a made-up clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import pytest
import torch

from autockpt.cost_models.calibration import IN, OUT
from autockpt.measure import DeviceCopier, time_host_link
from autockpt.measure.offload.link import READINGS
from autockpt.offload import drain, host_memory, slowed

CPU = torch.device("cpu")


class Copier:
    """Of a device whose copies take as long as its rates say, and that sees who copies at the same time."""

    def __init__(self, together: threading.Barrier, **rates: float) -> None:
        self._together, self._rates = together, rates
        self.pinned: list[int] = []

    def pin(self, sizes: Sequence[int]) -> None:
        self.pinned += sizes

    def copies(self, nbytes: int) -> dict[str, Callable[[], object]]:
        return {direction: lambda rate=rate: self._copy(nbytes / rate) for direction, rate in self._rates.items()}

    def _copy(self, seconds: float) -> None:
        # All devices copy at this moment, or this raises.
        self._together.wait(timeout=10)
        NOW.seconds = getattr(NOW, "seconds", 0.0) + seconds


NOW = threading.local()
"""A clock for each thread."""


def test_all_devices_copy_at_once_and_the_slowest_counts() -> None:
    together = threading.Barrier(3)
    copiers = [Copier(together, out=out, **{"in": into}) for out, into in ((4e9, 9e9), (2e9, 8e9), (3e9, 7e9))]
    found = time_host_link(copiers, clock=lambda: getattr(NOW, "seconds", 0.0))
    assert found.devices == 3
    assert found.bytes_per_second == pytest.approx({OUT: 2e9, IN: 7e9})
    assert all(copier.pinned == copiers[0].pinned for copier in copiers)


def test_a_device_that_fails_stops_all() -> None:
    class Failing(Copier):
        def _copy(self, seconds: float) -> None:
            raise RuntimeError("the link is down")

    together = threading.Barrier(1)
    with pytest.raises((RuntimeError, threading.BrokenBarrierError)):
        time_host_link([Failing(together, out=1.0, **{"in": 1.0}), Copier(together, out=1.0, **{"in": 1.0})])


def test_the_cpu_really_copies_and_nothing_stays_on_its_host() -> None:
    drain()
    taken = host_memory("cpu").taken_bytes
    found = time_host_link([DeviceCopier(CPU)])
    assert [(one.direction, one.nbytes) for one in found.copies[:2]] == [(OUT, 2**16), (IN, 2**16)]
    assert all(1e5 < rate < 1e13 for rate in found.bytes_per_second.values())
    assert found.pin_bytes_per_second > 0
    assert host_memory("cpu").taken_bytes == taken


def test_a_slow_link_is_seen() -> None:
    """Otherwise the figures of the test above might be of anything."""
    with slowed(0.002):
        started = time.perf_counter()
        found = time_host_link([DeviceCopier(CPU)])
        took = time.perf_counter() - started
    assert found.latency_seconds > 0.001
    assert took > 0.002 * READINGS * len(found.copies)
