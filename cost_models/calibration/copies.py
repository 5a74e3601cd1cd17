"""Fit the link to the host to timed copies: a line in their bytes for each direction.

    seconds = latency + bytes / bandwidth

Every reading weighs the same, however long it took. Devices of one host share memory channels and often switches, so
all of them copy at once and the slowest counts. One latency stands for both directions: the longer one. Pinning, which
is done once for every block, is timed by the memory that the copies use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autockpt.cost_models.device import DeviceProfile

OUT, IN = "out", "in"
"""From the device to the host, and back."""


@dataclass(frozen=True)
class MeasuredCopy:
    direction: str
    nbytes: int
    seconds: float


@dataclass(frozen=True)
class CalibratedLink:
    bytes_per_second: Mapping[str, float]
    """By direction."""
    latency_seconds: float
    pin_bytes_per_second: float
    devices: int
    """That copied at once."""
    copies: tuple[MeasuredCopy, ...]

    def written_to(self, profile: DeviceProfile) -> DeviceProfile:
        return replace(
            profile,
            device_to_host_bytes_per_second=self.bytes_per_second[OUT],
            host_to_device_bytes_per_second=self.bytes_per_second[IN],
            copy_latency_seconds=self.latency_seconds,
            pin_bytes_per_second=self.pin_bytes_per_second,
        )

    def error(self, direction: str) -> float:
        """The largest relative error of the fit, of the copies of a direction."""
        rate = self.bytes_per_second[direction]
        copies = (one for one in self.copies if one.direction == direction)
        return max(abs((self.latency_seconds + one.nbytes / rate) / one.seconds - 1) for one in copies)


def fit_host_link(copies: Sequence[MeasuredCopy], pin_bytes_per_second: float, devices: int) -> CalibratedLink:
    lines = {direction: _line([one for one in copies if one.direction == direction]) for direction in (OUT, IN)}
    return CalibratedLink(
        bytes_per_second={direction: rate for direction, (rate, _) in lines.items()},
        latency_seconds=max(latency for _, latency in lines.values()),
        pin_bytes_per_second=pin_bytes_per_second,
        devices=devices,
        copies=tuple(copies),
    )


def _line(copies: Sequence[MeasuredCopy]) -> tuple[float, float]:
    """Bytes a second and seconds of latency."""
    nbytes = np.array([one.nbytes for one in copies], dtype=float)
    seconds = np.array([one.seconds for one in copies])
    slope, start = np.polyfit(nbytes, seconds, 1, w=1 / seconds)
    return 1 / max(float(slope), 1e-15), max(float(start), 0.0)
