"""A device profile: the rates and curves from which seconds are computed."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, log
from types import MappingProxyType
from typing import Annotated, Any

from msgspec import Meta

Positive = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
NotNegative = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
Bytes = Annotated[int, Meta(ge=0)]
"""What a file of a profile may hold; `autockpt.cost_models.profiles` reads it."""

Curve = tuple[tuple[Positive, Positive], ...]
"""Points (x, y) with increasing x; linear in log x and log y between them, constant outside them."""

FAMILIES = (
    "matmul",
    "batched_matmul",
    "attention",
    "attention_backward",
    "convolution",
    "convolution_backward",
    "depthwise",
    "depthwise_backward",
)
"""Families of matrix kernels; each reaches its own share of the peak."""

ARITHMETIC: Mapping[str, float] = MappingProxyType(
    {
        "cheap": 1.0,
        "divide": 4.0,
        "exponential": 12.0,
        "transcendental": 16.0,
        "hyperbolic": 20.0,
        "power": 30.0,
        "reduce": 2.0,
        "normalize": 8.0,
        "gather": 4.0,
        "scatter": 8.0,
        "scan": 8.0,
        "sort": 40.0,
    }
)
"""Cheap vector instructions that one element costs, by kind of arithmetic, where a profile has no measured figure.
Estimated from the lengths of the polynomials that vector math libraries evaluate."""


@dataclass(frozen=True, slots=True)
class Link:
    """Between the devices of a job, of one kind: inside a node, or between nodes."""

    ranks: Bytes
    """So many ranks, numbered one after the other, share it: a node; 0: all of the job."""
    bytes_per_second: Positive
    """That a device sends, in one direction, as collectives reach it."""
    latency_seconds: NotNegative
    """Of one step of a collective."""


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    name: str
    source: str
    """Where the figures come from."""
    kind: Annotated[str, Meta(pattern="^(cpu|cuda)$")]
    """torch's device type, `cpu` or `cuda`; ROCm devices are `cuda`."""
    memory_bytes: Bytes
    """0 if not known: the memory of a CPU differs from machine to machine."""
    matrix_flops_per_second: Mapping[str, Positive]
    """Peak of matrix kernels by dtype. `float32` is required and used for dtypes that are missing."""
    vector_flops_per_second: Positive
    """Cheap elementwise instructions a second, without memory traffic."""
    random_numbers_per_second: Positive
    bytes_per_second: Positive
    """Memory bandwidth, reads and writes together, without caches."""
    launch_seconds: NotNegative
    """Seconds of a kernel that does nothing."""
    host_bytes_per_second: Positive
    """Bandwidth of the link to host memory, one direction."""
    device_to_host_bytes_per_second: NotNegative = 0.0
    """Copies out to pinned host memory, all devices of a host at once; 0: no link, and nothing is offloaded."""
    host_to_device_bytes_per_second: NotNegative = 0.0
    """Copies in, likewise."""
    copy_latency_seconds: NotNegative = 0.0
    """Of one copy, on top of its bytes."""
    pin_bytes_per_second: NotNegative = 0.0
    """At which host memory is mapped and pinned, once, when a plan is compiled; 0: not known."""
    efficiency: Mapping[str, Curve] = field(default_factory=dict)
    """By family, the share of the matrix peak that is reached as a function of the seconds at peak; 1 if missing.

    A key such as `attention.bfloat16` holds for one dtype and takes precedence over its family's.
    """
    vector_weights: Mapping[str, Positive] = field(default_factory=dict)
    """Cheap instructions an element, by kind of arithmetic; the default of `ARITHMETIC` if missing."""
    bandwidth: Curve = ()
    """Bytes a second as a function of the bytes that a kernel moves, which shows caches; empty: `bytes_per_second`."""
    fresh_above_bytes: Bytes = 0
    """Allocations larger than this are mapped anew, so that their first write faults every page; 0: never."""
    fresh_bytes_per_second: NotNegative = 0.0
    """Rate of these page faults, whose time is added to that of the write."""
    links: tuple[Link, ...] = ()
    """From the fastest to the slowest; empty: collectives go over the link to the host."""
    calibration: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """How the figures were fitted, and the errors of the fit."""

    def matrix_rate(self, dtype: str, family: str = "matmul", flops: float = float("inf")) -> float:
        peak = self.matrix_flops_per_second.get(dtype, self.matrix_flops_per_second["float32"])
        curve = self.efficiency.get(f"{family}.{dtype}") or self.efficiency.get(family, ())
        return peak * interpolate(curve, flops / peak) if curve else peak

    def weight(self, arithmetic: str) -> float:
        return self.vector_weights.get(arithmetic, ARITHMETIC[arithmetic])

    def traffic_rate(self, nbytes: float) -> float:
        return interpolate(self.bandwidth, nbytes) if self.bandwidth else self.bytes_per_second


def interpolate(curve: Curve, where: float) -> float:
    """The curve's y at x = `where`."""
    right = bisect_left(curve, where, key=lambda point: point[0])
    if right == 0:
        return curve[0][1]
    if right == len(curve):
        return curve[-1][1]
    (low, below), (high, above) = curve[right - 1], curve[right]
    share = log(where / low) / log(high / low)
    return exp(log(below) * (1 - share) + log(above) * share)
