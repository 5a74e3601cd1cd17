"""`autockpt calibrate`: time this machine's kernels, show how well a profile fits them, and keep it."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from autockpt.calibration_report import plot, summary, table
from autockpt.cost_models.calibration import Calibration, calibrate, expected_steps
from autockpt.errors import AutockptError
from autockpt.machine import is_here
from autockpt.plot import check_plot
from autockpt.profile_store import calibrated_path, default_device, hardware, save_profile

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
    if device.type not in ("cpu", "cuda") or not is_here(device) or (device.index or 0) >= _count(device):
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
            hardware(device),
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
