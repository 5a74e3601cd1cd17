"""A device as a handful of rates and curves."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, log
from types import MappingProxyType
from typing import Any

Curve = tuple[tuple[float, float], ...]
"""Points in rising order; between them a straight line in the logarithms, outside them the nearest point."""

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
"""Kernels of matrix arithmetic that differ in how near they come to the peak."""

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
"""Cheap vector instructions an element, where a profile says nothing else: polynomial lengths of math libraries."""


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    name: str
    source: str
    """Where the figures come from."""
    kind: str
    """What torch calls it: `cpu` or `cuda`, ROCm included."""
    memory_bytes: int
    """0 where it differs from machine to machine."""
    matrix_flops_per_second: Mapping[str, float]
    """The best that kernels reach, by dtype; `float32` is always there and stands in for what is not."""
    vector_flops_per_second: float
    """Cheap elementwise instructions on what is in registers."""
    random_numbers_per_second: float
    bytes_per_second: float
    """Of memory traffic, reads and writes together, where nothing is cached."""
    launch_seconds: float
    """What a kernel takes that has nothing to do."""
    host_bytes_per_second: float
    """Over the link to host memory, one way."""
    allocator_rounding_bytes: int
    """Sizes are rounded up to a multiple of this."""
    efficiency: Mapping[str, Curve] = field(default_factory=dict)
    """Share of the matrix peak by family, over the seconds that the peak would take; 1 where a family is missing.

    A name such as `attention.bfloat16` is of one dtype and goes before that of its family.
    """
    vector_weights: Mapping[str, float] = field(default_factory=dict)
    """Cheap instructions an element, by kind of arithmetic; `ARITHMETIC` where one is missing."""
    bandwidth: Curve = ()
    """Bytes a second over bytes moved, where caches matter; empty: `bytes_per_second`."""
    fresh_above_bytes: int = 0
    """Tensors larger than this come in pages that were never touched; 0: none do."""
    fresh_bytes_per_second: float = 0.0
    """At which such pages come, on top of what is written to them."""
    calibration: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """How the figures were fitted, and how well."""

    def matrix_rate(self, dtype: str, family: str = "matmul", flops: float = float("inf")) -> float:
        peak = self.matrix_flops_per_second.get(dtype, self.matrix_flops_per_second["float32"])
        curve = self.efficiency.get(f"{family}.{dtype}") or self.efficiency.get(family, ())
        return peak * at(curve, flops / peak) if curve else peak

    def weight(self, arithmetic: str) -> float:
        return self.vector_weights.get(arithmetic, ARITHMETIC[arithmetic])

    def traffic_rate(self, nbytes: float) -> float:
        return at(self.bandwidth, nbytes) if self.bandwidth else self.bytes_per_second


def at(curve: Curve, where: float) -> float:
    """The curve's height at one place."""
    right = bisect_left(curve, where, key=lambda point: point[0])
    if right == 0:
        return curve[0][1]
    if right == len(curve):
        return curve[-1][1]
    (low, below), (high, above) = curve[right - 1], curve[right]
    share = log(where / low) / log(high / low)
    return exp(log(below) * (1 - share) + log(above) * share)
