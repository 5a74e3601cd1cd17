"""Time as the slower of arithmetic and memory traffic (Williams, Waterman, Patterson 2009)."""

from __future__ import annotations

from autockpt.cost_models.device import DeviceProfile
from autockpt.cost_models.work import Work


def seconds_of(work: Work, device: DeviceProfile) -> float:
    """Seconds of one operation that runs as a kernel of its own."""
    return max(arithmetic_seconds(work, device), work.bytes_moved / device.bytes_per_second) + device.launch_seconds


def arithmetic_seconds(work: Work, device: DeviceProfile) -> float:
    """What an operation adds to a kernel that runs anyway: its arithmetic, no traffic and no launch."""
    return (
        work.matrix_flops / device.matrix_rate(work.dtype)
        + work.vector_flops / device.vector_flops_per_second
        + work.random_numbers / device.random_numbers_per_second
    )
