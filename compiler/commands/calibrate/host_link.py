"""`autockpt calibrate --host-link`: copies between device and host, into the profile of this hardware."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from autockpt.commands.console import print_lines, progress_line, stdout_console

if TYPE_CHECKING:
    import torch

    from autockpt.cost_models.calibration import CalibratedLink


def calibrate_host_link(device: torch.device, path: Path, *, all_devices: bool, as_json: bool) -> int:
    """Writes the calibrated profile, or the shipped one, with the link that was found."""
    from autockpt.machine import find_profile, save_profile

    link = measured_link(device, all_devices=all_devices)
    save_profile(link.written_to(find_profile(device)), path)
    if as_json:
        print(json.dumps(asdict(link), indent=1))
        return 0
    print_lines(stdout_console(140), [*link_lines(link), f"profile: {path}"])
    return 0


def measured_link(device: torch.device, *, all_devices: bool) -> CalibratedLink:
    from autockpt.measure import DeviceCopier, time_host_link

    devices = devices_of_host(device) if all_devices else [device]
    with progress_line() as progress:
        return time_host_link([DeviceCopier(one) for one in devices], progress)


def devices_of_host(device: torch.device) -> list[torch.device]:
    """All GPUs; the CPU is one device."""
    import torch

    if device.type != "cuda":
        return [device]
    return [torch.device("cuda", number) for number in range(torch.cuda.device_count())]


def link_lines(link: CalibratedLink) -> list[str]:
    which = f"{link.devices} devices at once" if link.devices > 1 else "one device alone"
    names = {"out": "device to host", "in": "host to device"}
    rates = (
        f"{names[direction]}: {rate / 1e9:.2f} GB/s, within {link.error(direction):.0%}"
        for direction, rate in link.bytes_per_second.items()
    )
    return [
        f"link to the host, {which}, from {len(link.copies)} copies:",
        *rates,
        f"latency: {link.latency_seconds * 1e6:.0f} µs a copy",
        f"host memory: mapped and pinned at {link.pin_bytes_per_second / 1e9:.2f} GB/s, once when a plan is compiled",
    ]
