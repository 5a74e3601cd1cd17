"""Fits a device profile to measurements: each figure to the kernels that it dominates, and after those it depends on.

All fits are closed forms: the launch from calls of one and of many kernels, peaks from the fastest matmul of a dtype,
curves through geometric means, weights of arithmetic from what a loop takes beyond its cheap instructions.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import exp, log
from typing import Any

from autockpt.cost_models.calibration.sample import Measurement
from autockpt.cost_models.device import ARITHMETIC, FAMILIES, Curve, DeviceProfile, interpolate
from autockpt.cost_models.work import Work

_UNCACHED_BYTES = 2**25
"""Traffic of a loop whose bandwidth is taken as that of memory without caches."""
_MAPPED_ABOVE_BYTES = 2**25
"""Largest allocation that glibc reuses (its limit of `M_MMAP_THRESHOLD`); larger ones are mapped anew each time."""
HELD_OUT = "layers"
"""The family of kernels that are held out of the fit."""
_NOTICEABLE = 0.2
"""Share of a kernel's time that page faults must take to be fitted."""
_LONG = 10
"""Kernels of at least so many launches' time show a peak even if the launch is fitted badly."""
_MERGED = 1.6
"""Points of a curve whose x differ by less than this factor are merged into one."""


def fit(
    measured: Sequence[Measurement], *, name: str, source: str, kind: str, memory_bytes: int, launch_seconds: float
) -> DeviceProfile:
    groups: dict[str, list[Measurement]] = defaultdict(list)
    for one in measured:
        groups[one.family].append(one)
    peaks = fit_peaks(measured, launch_seconds)
    moving = [*groups["traffic"], *groups["pointwise"]]
    bandwidth = _curve((one.bytes_moved, one.bytes_moved / _net(one, launch_seconds)) for one in moving)
    vector, weights = fit_vectors(groups, launch_seconds)
    fresh = fit_fresh(groups["fresh"], bandwidth, launch_seconds)
    host = [one.bytes_moved / _net(one, launch_seconds) for one in groups["host"]]
    return DeviceProfile(
        name=name,
        source=source,
        kind=kind,
        memory_bytes=memory_bytes,
        matrix_flops_per_second=peaks,
        vector_flops_per_second=vector,
        random_numbers_per_second=fit_random(groups["random"], vector, launch_seconds),
        bytes_per_second=interpolate(bandwidth, _UNCACHED_BYTES),
        launch_seconds=launch_seconds,
        host_bytes_per_second=min(host, default=interpolate(bandwidth, _UNCACHED_BYTES)),
        efficiency=fit_efficiency(measured, peaks, launch_seconds),
        vector_weights=weights,
        bandwidth=bandwidth,
        fresh_above_bytes=_MAPPED_ABOVE_BYTES if fresh else 0,
        fresh_bytes_per_second=fresh,
    )


def fit_launch(one: float, many: float, launches: int) -> tuple[float, float]:
    """Seconds of a launch and of the call around it, from the seconds of a call with one kernel and with `launches`."""
    launch = max((many - one) / (launches - 1), 1e-9)
    return launch, max(one - launch, 0.0)


def fit_peaks(measured: Iterable[Measurement], launch_seconds: float) -> dict[str, float]:
    """FLOPs a second of the fastest matmul by dtype; of short matmuls only if there are no long ones."""
    best: dict[str, tuple[bool, float]] = {}
    for one in measured:
        work = _matrix(one)
        if work is not None and one.family in ("matmul", "batched_matmul"):
            long = one.seconds > _LONG * launch_seconds
            best[work.dtype] = max(
                (long, work.matrix_flops / _net(one, launch_seconds)), best.get(work.dtype, (False, 0.0))
            )
    return {dtype: rate for dtype, (_, rate) in best.items()}


def fit_efficiency(measured: Iterable[Measurement], peaks: dict[str, float], launch_seconds: float) -> dict[str, Curve]:
    """By family and dtype, because dtypes have different kernels; float32's curves have the family's bare name and
    serve dtypes without measurements."""
    points: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for one in measured:
        work = _matrix(one)
        if work is not None and work.dtype in peaks:
            ideal = work.matrix_flops / peaks[work.dtype]
            name = one.family if work.dtype == "float32" else f"{one.family}.{work.dtype}"
            points[name].append((ideal, ideal / _net(one, launch_seconds)))
    return {name: _curve(found) for name, found in points.items()}


def fit_fresh(large: Sequence[Measurement], bandwidth: Curve, launch_seconds: float) -> float:
    """Bytes a second of page faults, from what kernels with large results take beyond their traffic; 0 if nothing."""
    rates = []
    for one in large:
        net = _net(one, launch_seconds)
        beyond = net - one.bytes_moved / interpolate(bandwidth, one.bytes_moved)
        if beyond > _NOTICEABLE * net:
            rates.append(sum(one.written) / beyond)
    return _mean(rates) if rates else 0.0


def fit_vectors(groups: dict[str, list[Measurement]], launch_seconds: float) -> tuple[float, dict[str, float]]:
    """Cheap instructions a second, and the cost of the other kinds of arithmetic in cheap instructions."""
    (cheap,) = groups["cheap"]
    rate = sum(work.elements for work in cheap.works) / _net(cheap, launch_seconds)
    weights = {"cheap": 1.0}
    for kind in ARITHMETIC:
        for one in groups[kind] if kind != "cheap" else ():
            of_kind = sum(work.elements for work in one.works if work.arithmetic == kind)
            cheap_elements = sum(work.elements for work in one.works if work.arithmetic == "cheap")
            weights[kind] = max((_net(one, launch_seconds) * rate - cheap_elements) / of_kind, 0.1)
    return rate, weights


def fit_random(drawn: Sequence[Measurement], vector_rate: float, launch_seconds: float) -> float:
    rates = []
    for one in drawn:
        arithmetic = sum(work.elements for work in one.works) / vector_rate
        numbers = sum(work.random_numbers for work in one.works)
        rates.append(numbers / max(_net(one, launch_seconds) - arithmetic, 1e-9))
    return statistics.median(rates)


def _net(one: Measurement, launch_seconds: float) -> float:
    """Seconds without the launch, but at least a quarter of all: noise may exceed the shortest kernels."""
    return max(one.seconds - launch_seconds, one.seconds / 4)


def _matrix(one: Measurement) -> Work | None:
    works = [work for work in one.works if work.matrix_flops]
    return works[0] if len(works) == 1 and one.family in FAMILIES else None


def _curve(points: Iterable[tuple[float, float]]) -> Curve:
    """Geometric means of neighbouring points: `interpolate` is linear in the logarithms."""
    bins: list[list[tuple[float, float]]] = []
    for point in sorted(points):
        if bins and point[0] < bins[-1][0][0] * _MERGED:
            bins[-1].append(point)
        else:
            bins.append([point])
    return tuple((_mean(where for where, _ in inside), _mean(height for _, height in inside)) for inside in bins)


def _mean(values: Iterable[float]) -> float:
    logarithms = [log(value) for value in values]
    return exp(sum(logarithms) / len(logarithms))


def quality(measured: Iterable[Measurement], device: DeviceProfile) -> dict[str, Any]:
    """Relative errors of the fit: over all kernels, and over those held out of it."""
    errors = {f"{one.family}: {one.label}": abs(one.error(device)) for one in measured}
    unseen = [error for name, error in errors.items() if name.startswith(HELD_OUT)]
    worst = max(errors, key=lambda name: errors[name])
    return {
        "kernels": len(errors),
        "median_error": statistics.median(errors.values()),
        "worst_error": errors[worst],
        "worst": worst,
        "unseen_kernels": len(unseen),
        "unseen_median_error": statistics.median(unseen) if unseen else 0.0,
        "unseen_worst_error": max(unseen, default=0.0),
    }
