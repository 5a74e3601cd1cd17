"""Time as the slower of arithmetic and memory traffic (Williams, Waterman, Patterson 2009)."""

from __future__ import annotations

from autockpt.cost_models.device import DeviceProfile
from autockpt.cost_models.work import Work


def seconds_of(work: Work, device: DeviceProfile) -> float:
    """Seconds of one operation that runs as a kernel of its own."""
    return max(arithmetic_seconds(work, device), traffic_seconds(work.bytes_moved, device)) + device.launch_seconds


def arithmetic_seconds(work: Work, device: DeviceProfile) -> float:
    """What an operation adds to a kernel that runs anyway: its arithmetic, no traffic and no launch."""
    seconds = work.elements * device.weight(work.arithmetic) / device.vector_flops_per_second
    seconds += work.random_numbers / device.random_numbers_per_second
    if work.matrix_flops:
        seconds += work.matrix_flops / device.matrix_rate(work.dtype, work.family, work.matrix_flops)
    return seconds


def traffic_seconds(nbytes: float, device: DeviceProfile) -> float:
    return nbytes / device.traffic_rate(nbytes) if nbytes else 0.0
