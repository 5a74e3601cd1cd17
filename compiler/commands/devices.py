"""`autockpt devices`: the device profiles that exist, and which of them this machine uses by default."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from autockpt.commands.console import stdout_console
from autockpt.units import format_size

if TYPE_CHECKING:
    from rich.table import Table

    from autockpt.cost_models import DeviceProfile


@dataclass(frozen=True)
class Listed:
    profile: DeviceProfile
    path: str | None
    """The file of a calibrated profile; None for a shipped one."""
    default: bool
    """Whether this machine uses it where no `device` is named."""

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.profile.name,
            "default": self.default,
            "calibrated": self.path,
            "memory_bytes": self.profile.memory_bytes,
            "source": self.profile.source,
        }


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(as_json: bool) -> int:
    """List device profiles, and which of them is used here."""
    listed, broken = list_devices()
    if as_json:
        print(json.dumps([one.as_json() for one in listed], indent=1))
    else:
        stdout_console(120).print(_table(listed))
        print("* is used on this machine where no `device` is named")
    if broken:
        print(f"autockpt: {broken}", file=sys.stderr)
    return 0


def list_devices() -> tuple[list[Listed], str]:
    """The calibrated profile first, then the shipped ones; and why a calibrated profile cannot be used, or ``""``."""
    from autockpt.cost_models import ProfileError, load_profile, shipped_profiles
    from autockpt.machine import calibrated_path, calibrated_profile, default_device, shipped_profile

    device = default_device()
    listed: list[Listed] = []
    broken = ""
    try:
        if calibrated := calibrated_profile(device):
            listed.append(Listed(calibrated, str(calibrated_path(device)), default=True))
    except ProfileError as error:
        broken = str(error)
    default = shipped_profile(device).name
    for name in shipped_profiles():
        listed.append(Listed(load_profile(name), None, default=name == default and not (listed and listed[0].path)))
    return listed, broken


def _table(listed: list[Listed]) -> Table:
    from rich.table import Table

    table = Table("", "device", "memory", "source")
    for one in listed:
        memory = format_size(one.profile.memory_bytes) if one.profile.memory_bytes else ""
        where = f"\n{one.path}" if one.path else ""
        # The name of the source only; `--json` also has what its figures mean.
        source = one.profile.source.partition(": ")[0]
        table.add_row("*" if one.default else "", one.profile.name, memory, f"{source}{where}")
    return table
