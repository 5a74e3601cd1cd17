"""`autockpt calibrate`: time this machine's kernels, show how well a profile fits them, and keep it.

How well a profile fits what was measured: a table by family, two sentences, and a plot.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from autockpt.cost_models.calibration import UNSEEN, Calibration, Measurement, calibrate, expected_steps
from autockpt.cost_models.device import ARITHMETIC, FAMILIES, DeviceProfile
from autockpt.errors import AutockptError
from autockpt.machine import calibrated_path, default_device, device_available, hardware_name, save_profile
from autockpt.render import Series, check_plot, save_plot

INTERRUPTED = 130


def add_calibrate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "calibrate",
        help="time this machine's kernels and fit a device profile to them",
        description="The profile is written where autockpt finds it again on this machine; `autockpt devices` shows "
        "it. Best on a machine that does nothing else.",
    )
    parser.add_argument("--device", metavar="cpu|cuda:0", help="what to time (default: cuda:0 where there is one)")
    parser.add_argument("--quick", action="store_true", help="fewer kernels and shorter readings: about a minute")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the profile there instead")
    parser.add_argument("--plot", metavar="FILE", help="measured against fitted (default: beside the profile)")
    parser.add_argument("--json", action="store_true", help="print every measurement as JSON instead of a table")
    parser.set_defaults(run=_run)


def _run(parsed: argparse.Namespace) -> int:
    device = _device(parsed.device)
    path = Path(parsed.output) if parsed.output else calibrated_path(device)
    if path.suffix != ".json":
        raise AutockptError(f"--output {path} must end in .json: that is how a profile is known as a file")
    picture = parsed.plot or str(path.with_suffix(".png"))
    drawn = find_spec("matplotlib") is not None
    if drawn:
        check_plot(picture)
    try:
        calibration = _calibrate(device, parsed.quick)
        save_profile(calibration.profile, path)
    except KeyboardInterrupt:
        print("autockpt: calibration stopped; nothing was written", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        raise AutockptError(f"the profile cannot be written to {path}: {error.strerror}") from None
    _show(calibration, as_json=parsed.json)
    if drawn:
        plot(calibration, picture)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"profile: {path}", markup=False)
    console.print(
        f"plot: {picture}" if drawn else "no plot: it needs matplotlib, pip install 'autockpt[plot]'", markup=False
    )
    return 0


def _device(name: str | None) -> torch.device:
    if name is None:
        return default_device()
    try:
        device = torch.device(name)
    except RuntimeError:
        raise AutockptError(f"--device {name!r} is no device; cpu and cuda:0 are") from None
    if device.type not in ("cpu", "cuda") or not device_available(device) or (device.index or 0) >= _count(device):
        raise AutockptError(f"--device {name} is not on this machine; {default_device()} is")
    return device if device.type == "cpu" else torch.device("cuda", device.index or 0)


def _count(device: torch.device) -> int:
    return torch.cuda.device_count() if device.type == "cuda" else 1


def _calibrate(device: torch.device, quick: bool) -> Calibration:
    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("compiling", total=expected_steps(quick))
        name = device.type if device.type == "cpu" else str(device)
        return calibrate(
            name,
            quick,
            lambda text, done: progress.update(task, description=text, completed=done),
            hardware_name(device),
        )


def _show(calibration: Calibration, *, as_json: bool) -> None:
    if as_json:
        profile = calibration.profile
        rows = [
            {**one.as_json(), "fitted_seconds": one.fitted_seconds(profile), "error": one.error(profile)}
            for one in calibration.measurements
        ]
        print(json.dumps({"calibration": dict(profile.calibration), "measurements": rows}, indent=1))
        return
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    console.print(table(calibration))
    for line in summary(calibration):
        console.print(line, markup=False, soft_wrap=True)


def families(measurements: Sequence[Measurement]) -> dict[str, list[Measurement]]:
    """In the order in which they were measured; those of half precision are families of their own."""
    found: dict[str, list[Measurement]] = {}
    for one in measurements:
        found.setdefault(_family(one), []).append(one)
    return found


def table(calibration: Calibration) -> Table:
    shown = Table("family", "kernels", "measured", "fitted", "error", "worst", "of", "spread")
    for column in shown.columns:
        column.no_wrap = True
        column.justify = "right" if column.header in ("kernels", "fitted", "error", "worst", "spread") else "left"
    profile = calibration.profile
    for family, group in families(calibration.measurements).items():
        worst = max(group, key=lambda one: abs(one.error(profile)))
        shown.add_row(
            family,
            str(len(group)),
            _range([one.seconds for one in group]),
            figure(profile, family),
            f"{median(abs(one.error(profile)) for one in group):.0%}",
            f"{worst.error(profile):+.0%}",
            worst.label,
            f"{median(one.spread for one in group):.0%}",
        )
    return shown


def figure(profile: DeviceProfile, family: str) -> str:
    """What the profile says about a family, in its own unit."""
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


def summary(calibration: Calibration) -> list[str]:
    facts = calibration.profile.calibration
    lines = [
        f"{facts['kernels']} kernels, most of which a figure is fitted to: off by {facts['median_error']:.0%} in the "
        f"median and by {facts['worst_error']:.0%} at worst ({facts['worst']})",
        f"{facts['unseen_kernels']} kernels of layers that nothing was fitted to: {facts['unseen_median_error']:.0%} "
        f"in the median, {facts['unseen_worst_error']:.0%} at worst",
    ]
    return [*lines, *calibration.notes]


def plot(calibration: Calibration, path: str) -> None:
    profile = calibration.profile
    points: dict[str, list[tuple[float, float]]] = {}
    for one in calibration.measurements:
        points.setdefault(_colour(one), []).append((one.seconds * 1e3, one.fitted_seconds(profile) * 1e3))
    title = f"{profile.name}: kernels measured and fitted"
    series = [Series(name, found) for name, found in points.items()]
    save_plot(path, series, title=title, x="measured, ms", y="fitted, ms", log=True, diagonal=True)


def _colour(one: Measurement) -> str:
    """A few words for the legend, which a plot of every family would not leave room beside."""
    if one.family in ARITHMETIC or one.family == "random":
        return "arithmetic"
    if one.family in FAMILIES:
        return next(word for start, word in _COLOURS.items() if one.family.startswith(start))
    return "layers, not fitted" if one.family == UNSEEN else "memory"


_COLOURS = {
    "matmul": "matrix products",
    "batched": "matrix products",
    "attention": "attention",
    "convolution": "convolutions",
    "depthwise": "convolutions",
}


def _family(one: Measurement) -> str:
    dtypes = {work.dtype for work in one.works if work.matrix_flops} - {"float32"}
    return f"{one.family}.{dtypes.pop()}" if dtypes and one.family != UNSEEN else one.family


def _range(seconds: Sequence[float]) -> str:
    low, high = min(seconds), max(seconds)
    return _short(low) if low == high else f"{_short(low)} to {_short(high)}"


def _short(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} µs" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"
