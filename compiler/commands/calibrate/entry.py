"""`autockpt calibrate`: time this machine's kernels, fit a device profile to them, and store it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autockpt.commands.arguments import Arguments
from autockpt.commands.console import print_lines, progress_line, stdout_console

if TYPE_CHECKING:
    import torch

    from autockpt.cost_models.calibration import Calibration

_INTERRUPTED = 130


@click.command()
@click.option("--device", metavar="cpu|cuda:0", help="What to time (default: cuda:0 where there is one).")
@click.option("--quick", is_flag=True, help="Fewer kernels and shorter readings: about a minute.")
@click.option("-o", "--output", metavar="FILE", help="Write the profile there instead.")
@click.option("--plot", metavar="FILE", help="Measured against fitted (default: beside the profile).")
@click.option(
    "--links",
    is_flag=True,
    help="Instead: time collectives between ranks, for the links of the profile; run by torchrun, one rank a device.",
)
@click.option(
    "--host-link",
    is_flag=True,
    help="Instead: time copies to the host and back alone, for the profile. On the CPU, which is its own "
    "host, this is the only way to get a link.",
)
@click.option(
    "--all-devices",
    is_flag=True,
    help="Copy on all GPUs of this host at once, which share its memory; the slowest counts.",
)
@click.option("--json", is_flag=True, help="Print every measurement as JSON instead of a table.")
def command(**values: Any) -> int:
    """Time this machine's kernels and fit a device profile to them; of a GPU also the link to its host.

    The profile is written where autockpt finds it on this machine from then on; `autockpt devices` lists it. Best run
    on an otherwise idle machine.
    """
    return _run(Arguments(**values))


def _run(parsed: Arguments) -> int:
    from autockpt.errors import AutockptError
    from autockpt.machine import calibrated_path, save_profile
    from autockpt.render import check_plot

    device = _device(parsed.device)
    path = Path(parsed.output) if parsed.output else calibrated_path(device)
    if path.suffix != ".json":
        raise AutockptError(f"--output {path} must end in .json: --device takes that ending for the path of a profile")
    if parsed.links:
        from autockpt.commands.calibrate.links import calibrate_links

        return calibrate_links(device, path, as_json=parsed.json)
    if parsed.host_link:
        from autockpt.commands.calibrate.host_link import calibrate_host_link

        return calibrate_host_link(device, path, all_devices=parsed.all_devices, as_json=parsed.json)
    if parsed.all_devices and device.type == "cpu":
        raise click.UsageError(
            "--all-devices is for the link to the host, which calibrate times on a GPU or --host-link"
        )
    plot = parsed.plot or str(path.with_suffix(".png"))
    can_plot = find_spec("matplotlib") is not None
    if can_plot:
        check_plot(plot)
    try:
        calibration = _with_host_link(_calibrate(device, parsed.quick), device, parsed.all_devices)
        save_profile(calibration.profile, path)
    except KeyboardInterrupt:
        print("autockpt: calibration stopped; nothing was written", file=sys.stderr)
        return _INTERRUPTED
    except OSError as error:
        raise AutockptError(f"the profile cannot be written to {path}: {error.strerror}") from None
    _print(calibration, as_json=parsed.json)
    print(f"profile: {path}", file=sys.stderr)
    if not can_plot:
        print("no plot: it needs matplotlib, pip install 'autockpt[plot]'", file=sys.stderr)
        return 0
    from autockpt.commands.calibrate.report import save_calibration_plot

    save_calibration_plot(calibration, plot)
    print(f"plot: {plot}", file=sys.stderr)
    return 0


def _device(name: str | None) -> torch.device:
    import torch

    from autockpt.errors import AutockptError
    from autockpt.machine import default_device, device_available

    if name is None:
        return default_device()
    try:
        device = torch.device(name)
    except RuntimeError:
        raise AutockptError(f"--device {name!r} is no device; cpu and cuda:0 are") from None
    count = torch.cuda.device_count() if device.type == "cuda" else 1
    if device.type not in ("cpu", "cuda") or not device_available(device) or (device.index or 0) >= count:
        raise AutockptError(f"--device {name} is not on this machine; {default_device()} is")
    return device if device.type == "cpu" else torch.device("cuda", device.index or 0)


def _calibrate(device: torch.device, quick: bool) -> Calibration:
    from autockpt.cost_models.calibration import calibrate, expected_steps
    from autockpt.machine import hardware_name

    name = device.type if device.type == "cpu" else str(device)
    total = expected_steps(quick)
    with progress_line() as progress:
        return calibrate(name, quick, lambda text, done: progress(f"{text} ({done} of {total})"), hardware_name(device))


def _with_host_link(calibration: Calibration, device: torch.device, all_devices: bool) -> Calibration:
    """A CPU is its own host: nothing is offloaded by a profile of it, unless `--host-link` asks for that."""
    if device.type == "cpu":
        return calibration
    from autockpt.commands.calibrate.host_link import link_lines, measured_link

    link = measured_link(device, all_devices=all_devices)
    notes = (*calibration.notes, *link_lines(link))
    return replace(calibration, profile=link.written_to(calibration.profile), notes=notes)


def _print(calibration: Calibration, *, as_json: bool) -> None:
    if as_json:
        profile = calibration.profile
        rows = [
            {**one.as_json(), "fitted_seconds": one.fitted_seconds(profile), "error": one.error(profile)}
            for one in calibration.measurements
        ]
        print(json.dumps({"calibration": dict(profile.calibration), "measurements": rows}, indent=1))
        return
    from autockpt.commands.calibrate.report import calibration_summary, calibration_table

    console = stdout_console(140)
    console.print(calibration_table(calibration))
    print_lines(console, calibration_summary(calibration))
