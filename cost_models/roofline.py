"""Time as the slower of arithmetic and memory traffic (Williams, Waterman, Patterson 2009)."""

from __future__ import annotations

from collections.abc import Iterable

from autockpt.cost_models.device import DeviceProfile
from autockpt.cost_models.links import transfer_seconds
from autockpt.cost_models.work import Work


def seconds_of(work: Work, device: DeviceProfile) -> float:
    """Seconds of one operation that runs as a kernel of its own."""
    if work.transfer is not None:
        return transfer_seconds(work.transfer, device)
    return max(arithmetic_seconds(work, device), traffic_seconds(work.bytes_moved, device)) + device.launch_seconds


def kernel_seconds(works: Iterable[Work], bytes_moved: float, device: DeviceProfile) -> float:
    """Seconds of several operations fused into one kernel, which moves these bytes in and out."""
    arithmetic = sum(arithmetic_seconds(work, device) for work in works)
    return max(arithmetic, traffic_seconds(bytes_moved, device)) + device.launch_seconds


def arithmetic_seconds(work: Work, device: DeviceProfile) -> float:
    """Seconds of an operation's arithmetic alone: what it adds to a kernel into which it is fused."""
    seconds = work.elements * device.weight(work.arithmetic) / device.vector_flops_per_second
    seconds += work.random_numbers / device.random_numbers_per_second
    if work.matrix_flops:
        seconds += work.matrix_flops / device.matrix_rate(work.dtype, work.family, work.matrix_flops)
    return seconds


def traffic_seconds(nbytes: float, device: DeviceProfile) -> float:
    return nbytes / device.traffic_rate(nbytes) if nbytes else 0.0


def fresh_seconds(nbytes: float, device: DeviceProfile) -> float:
    """Seconds of page faults that a new tensor of this size adds to the kernel that writes it first."""
    fresh = device.fresh_above_bytes and nbytes > device.fresh_above_bytes
    return nbytes / device.fresh_bytes_per_second if fresh and device.fresh_bytes_per_second else 0.0
