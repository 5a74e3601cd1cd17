"""`autockpt devices`: the profiles there are, and which of them this machine would use."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from autockpt.cost_models import DeviceProfile, ProfileError, load_profile, shipped_profiles
from autockpt.machine import calibrated_path, calibrated_profile, default_device, shipped_profile
from autockpt.units import format_size


@dataclass(frozen=True)
class Listed:
    profile: DeviceProfile
    path: str | None
    """Of a calibrated one."""
    default: bool

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.profile.name,
            "default": self.default,
            "calibrated": self.path,
            "memory_bytes": self.profile.memory_bytes,
            "source": self.profile.source,
        }


def add_devices(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    devices = commands.add_parser("devices", help="list device profiles, and which of them is used here")
    devices.add_argument("--json", action="store_true", help="print JSON instead of a table")
    devices.set_defaults(run=_run)


def list_devices() -> tuple[list[Listed], str]:
    """What there is, and what is wrong with a calibrated profile that cannot be used."""
    device = default_device()
    listed, broken = [], ""
    try:
        if calibrated := calibrated_profile(device):
            listed.append(Listed(calibrated, str(calibrated_path(device)), default=True))
    except ProfileError as error:
        broken = str(error)
    fits = shipped_profile(device).name
    for name in shipped_profiles():
        listed.append(Listed(load_profile(name), None, default=name == fits and not (listed and listed[0].path)))
    return listed, broken


def _run(parsed: argparse.Namespace) -> int:
    listed, broken = list_devices()
    if parsed.json:
        print(json.dumps([one.as_json() for one in listed], indent=1))
    else:
        Console(width=None if sys.stdout.isatty() else 120).print(_table(listed))
        print("* is used on this machine where no `device` is asked for")
    if broken:
        print(f"autockpt: {broken}", file=sys.stderr)
    return 0


def _table(listed: list[Listed]) -> Table:
    table = Table("", "device", "memory", "source")
    for one in listed:
        memory = format_size(one.profile.memory_bytes) if one.profile.memory_bytes else ""
        where = f"\n{one.path}" if one.path else ""
        # What the figures of a data sheet mean follows its name; `--json` has it all.
        source = one.profile.source.partition(": ")[0]
        table.add_row("*" if one.default else "", one.profile.name, memory, f"{source}{where}")
    return table
