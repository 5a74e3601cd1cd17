"""Measurements in, a device profile out: each figure from the kernels that show it best, in the order they need."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import exp, log
from typing import Any

from autockpt.cost_models.calibration.sample import Measurement
from autockpt.cost_models.device import ARITHMETIC, FAMILIES, Curve, DeviceProfile, interpolate
from autockpt.cost_models.work import Work

_TYPICAL = 2**25
"""Bytes of a loop whose speed speaks for memory where one figure has to."""
_FRESH = 2**25
"""The most that the C library keeps for reuse; what is larger goes back to the system when it is freed."""
_NOTICEABLE = 0.2
_LONG = 10
"""Launches that a kernel takes at least whose launch may be misjudged."""
_SAME = 1.6
"""Points of a curve that lie nearer than this factor are one point."""


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
        bytes_per_second=interpolate(bandwidth, _TYPICAL),
        launch_seconds=launch_seconds,
        host_bytes_per_second=min(host, default=interpolate(bandwidth, _TYPICAL)),
        efficiency=fit_efficiency(measured, peaks, launch_seconds),
        vector_weights=weights,
        bandwidth=bandwidth,
        fresh_above_bytes=_FRESH if fresh else 0,
        fresh_bytes_per_second=fresh,
    )


def fit_launch(one: float, many: float, launches: int) -> tuple[float, float]:
    """Seconds of a launch, and of a call around it, from calls of one kernel and of so many."""
    launch = max((many - one) / (launches - 1), 1e-9)
    return launch, max(one - launch, 0.0)


def fit_peaks(measured: Iterable[Measurement], launch_seconds: float) -> dict[str, float]:
    """The best that a matrix product reaches, by dtype; short ones are asked only where there are no others."""
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
    """Each dtype has curves of its own, because its kernels come from elsewhere; float32 stands in for the rest."""
    points: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for one in measured:
        work = _matrix(one)
        if work is not None and work.dtype in peaks:
            ideal = work.matrix_flops / peaks[work.dtype]
            name = one.family if work.dtype == "float32" else f"{one.family}.{work.dtype}"
            points[name].append((ideal, ideal / _net(one, launch_seconds)))
    return {name: _curve(found) for name, found in points.items()}


def fit_fresh(large: Sequence[Measurement], bandwidth: Curve, launch_seconds: float) -> float:
    """Bytes a second at which untouched pages come, from what large results take beyond their traffic; 0: no slower."""
    rates = []
    for one in large:
        net = _net(one, launch_seconds)
        beyond = net - one.bytes_moved / interpolate(bandwidth, one.bytes_moved)
        if beyond > _NOTICEABLE * net:
            rates.append(sum(one.written) / beyond)
    return _mean(rates) if rates else 0.0


def fit_vectors(groups: dict[str, list[Measurement]], launch_seconds: float) -> tuple[float, dict[str, float]]:
    """Cheap instructions a second; then, for the other kinds, how many of those each is worth."""
    (cheap,) = groups["cheap"]
    rate = sum(work.elements for work in cheap.works) / _net(cheap, launch_seconds)
    weights = {"cheap": 1.0}
    for kind in ARITHMETIC:
        for one in groups[kind] if kind != "cheap" else ():
            mine = sum(work.elements for work in one.works if work.arithmetic == kind)
            beside = sum(work.elements for work in one.works if work.arithmetic == "cheap")
            weights[kind] = max((_net(one, launch_seconds) * rate - beside) / mine, 0.1)
    return rate, weights


def fit_random(drawn: Sequence[Measurement], vector_rate: float, launch_seconds: float) -> float:
    rates = []
    for one in drawn:
        beside = sum(work.elements for work in one.works) / vector_rate
        numbers = sum(work.random_numbers for work in one.works)
        rates.append(numbers / max(_net(one, launch_seconds) - beside, 1e-9))
    return statistics.median(rates)


def _net(one: Measurement, launch_seconds: float) -> float:
    """Without the launch, of which noise may leave nothing."""
    return max(one.seconds - launch_seconds, one.seconds / 4)


def _matrix(one: Measurement) -> Work | None:
    works = [work for work in one.works if work.matrix_flops]
    return works[0] if len(works) == 1 and one.family in FAMILIES else None


def _curve(points: Iterable[tuple[float, float]]) -> Curve:
    """Geometric means of neighbours: between them lie straight lines in the logarithms."""
    bins: list[list[tuple[float, float]]] = []
    for point in sorted(points):
        if bins and point[0] < bins[-1][0][0] * _SAME:
            bins[-1].append(point)
        else:
            bins.append([point])
    return tuple((_mean(where for where, _ in inside), _mean(height for _, height in inside)) for inside in bins)


def _mean(values: Iterable[float]) -> float:
    logarithms = [log(value) for value in values]
    return exp(sum(logarithms) / len(logarithms))


def quality(measured: Iterable[Measurement], device: DeviceProfile) -> dict[str, Any]:
    """How far the fit is from what was measured: over all kernels, and over those that it has not seen."""
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


HELD_OUT = "layers"
"""The family of kernels that no figure is fitted to."""
