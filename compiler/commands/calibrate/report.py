"""How well a calibrated profile fits what was measured: a table by kernel family, two sentences, and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rich.table import Table

from autockpt.cost_models.calibration import HELD_OUT, Calibration, Measurement
from autockpt.cost_models.device import ARITHMETIC, FAMILIES, DeviceProfile
from autockpt.render import Series, save_plot


def _by_family(measurements: Sequence[Measurement]) -> dict[str, list[Measurement]]:
    """In the order of measurement. Matrix kernels of half precision are families of their own."""
    found: dict[str, list[Measurement]] = {}
    for one in measurements:
        found.setdefault(_family(one), []).append(one)
    return found


def calibration_table(calibration: Calibration) -> Table:
    shown = Table("family", "kernels", "measured", "fitted", "error", "worst", "of", "spread")
    for column in shown.columns:
        column.no_wrap = True
        column.justify = "right" if column.header in ("kernels", "fitted", "error", "worst", "spread") else "left"
    profile = calibration.profile
    for family, group in _by_family(calibration.measurements).items():
        worst = max(group, key=lambda one: abs(one.error(profile)))
        shown.add_row(
            family,
            str(len(group)),
            _range([one.seconds for one in group]),
            _figure(profile, family),
            f"{median(abs(one.error(profile)) for one in group):.0%}",
            f"{worst.error(profile):+.0%}",
            worst.label,
            f"{median(one.spread for one in group):.0%}",
        )
    return shown


def _figure(profile: DeviceProfile, family: str) -> str:
    """The profile's rate for a family, in that family's unit."""
    base, _, dtype = family.partition(".")
    if base in FAMILIES:
        curve = profile.efficiency.get(family) or profile.efficiency.get(base, ())
        peak = profile.matrix_flops_per_second[dtype or "float32"]
        return f"{peak * max((share for _, share in curve), default=1.0) / 1e9:,.0f} GFLOP/s"
    if family == "cheap":
        return f"{profile.vector_flops_per_second / 1e9:,.1f} G/s"
    if family in ARITHMETIC:
        return f"{profile.weight(family):,.1f} × cheap"
    if family == "random":
        return f"{profile.random_numbers_per_second / 1e6:,.0f} M/s"
    if family in ("traffic", "pointwise"):
        return f"{profile.bytes_per_second / 1e9:,.1f} GB/s"
    if family == "fresh":
        return f"{profile.fresh_bytes_per_second / 1e9:,.1f} GB/s"
    return f"{profile.host_bytes_per_second / 1e9:,.1f} GB/s" if family == "host" else ""


def calibration_summary(calibration: Calibration) -> list[str]:
    facts = calibration.profile.calibration
    lines = [
        f"{facts['kernels']} kernels, most of them used in the fit: off by {facts['median_error']:.0%} in the "
        f"median and by {facts['worst_error']:.0%} at worst ({facts['worst']})",
        f"{facts['unseen_kernels']} kernels of layers not used in the fit: off by {facts['unseen_median_error']:.0%} "
        f"in the median and by {facts['unseen_worst_error']:.0%} at worst",
    ]
    return [*lines, *calibration.notes]


def save_calibration_plot(calibration: Calibration, path: str) -> None:
    profile = calibration.profile
    points: dict[str, list[tuple[float, float]]] = {}
    for one in calibration.measurements:
        points.setdefault(_colour(one), []).append((one.seconds * 1e3, one.fitted_seconds(profile) * 1e3))
    title = f"{profile.name}: kernels measured and fitted"
    series = [Series(name, found) for name, found in points.items()]
    save_plot(path, series, title=title, x="measured, ms", y="fitted, ms", log=True, diagonal=True)


def _colour(one: Measurement) -> str:
    """Five groups for the legend: one entry for every family would cover the plot."""
    if one.family in ARITHMETIC or one.family == "random":
        return "arithmetic"
    if one.family in FAMILIES:
        return next(word for start, word in _COLOURS.items() if one.family.startswith(start))
    return "layers, not fitted" if one.family == HELD_OUT else "memory"


_COLOURS = {
    "matmul": "matrix products",
    "batched": "matrix products",
    "attention": "attention",
    "convolution": "convolutions",
    "depthwise": "convolutions",
}


def _family(one: Measurement) -> str:
    dtypes = {work.dtype for work in one.works if work.matrix_flops} - {"float32"}
    return f"{one.family}.{dtypes.pop()}" if dtypes and one.family != HELD_OUT else one.family


def _range(seconds: Sequence[float]) -> str:
    low, high = min(seconds), max(seconds)
    return _short(low) if low == high else f"{_short(low)} to {_short(high)}"


def _short(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} µs" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"
