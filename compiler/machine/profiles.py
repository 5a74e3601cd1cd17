"""The profile of a device: the one that `autockpt calibrate` wrote for this hardware, or the nearest shipped one."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from functools import cache
from math import log
from pathlib import Path

import torch

from autockpt.cost_models import DeviceProfile, ProfileError, load_profile
from autockpt.cost_models.profiles import profile_json, read_profile, shipped_profiles
from autockpt.files import write_file
from autockpt.machine.cache import cache_folder
from autockpt.machine.hardware import device_available, hardware_name

_FALLBACK = "a100-80gb"
"""For an accelerator of which nothing is known."""
_SHIPPED = (
    (r"\bH100\b.*PCIe", "h100-pcie"),
    (r"\bH100\b", "h100-sxm"),
    (r"\bGH200\b", "gh200"),
    (r"\bH200\b", "h200"),
    (r"\bG?B200\b", "b200"),
    (r"\bA100\b.*40GB", "a100-40gb"),
    (r"\bA100\b", "a100-80gb"),
    (r"\bA10G?\b", "a10"),
    (r"\bL40S?\b", "l40s"),
    (r"\bL4\b", "l4"),
    (r"\bRTX 3090\b", "rtx-3090"),
    (r"\bRTX 4090\b", "rtx-4090"),
    (r"\bV100\b", "v100"),
    (r"\bT4\b", "t4"),
    (r"\bMI300X\b", "mi300x"),
)
"""Shipped profiles by the name that the driver reports; the first match counts."""


def find_profile(device: torch.device) -> DeviceProfile:
    """The calibrated profile, else a shipped one. Warns once if that is unreadable, or if this is of another GPU."""
    try:
        if calibrated := calibrated_profile(device):
            return calibrated
    except ProfileError as error:
        _warn_once(str(error))
    profile = shipped_profile(device)
    if device.type != "cpu" and shipped_name(hardware_name(device)) is None:
        _warn_once(
            f"autockpt has no device profile of {hardware_name(device)!r} and forecasts seconds with the profile "
            f"{profile.name!r}; {_remedy(device)}"
        )
    return profile


def _remedy(device: torch.device) -> str:
    if device_available(device):
        return "`autockpt calibrate` measures one of this device"
    return "the option `device` names another, `autockpt devices` lists them"


def calibrated_profile(device: torch.device) -> DeviceProfile | None:
    """None if this hardware was never calibrated. Raises `ProfileError` for a file that cannot be used."""
    try:
        return read_profile(calibrated_path(device))
    except ProfileError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        message = f"{error}; the shipped profile is used instead, `autockpt calibrate` writes a new one"
        raise ProfileError(message) from error


def shipped_profile(device: torch.device) -> DeviceProfile:
    """The shipped profile of this device, or the nearest."""
    if device.type == "cpu":
        return with_tf32(load_profile("cpu"))
    return with_tf32(load_profile(shipped_name(hardware_name(device)) or _nearest_name(device)))


def with_tf32(profile: DeviceProfile) -> DeviceProfile:
    """The profile with the rate of float32 matmuls at the precision that torch is set to."""
    rates = profile.matrix_flops_per_second
    if torch.get_float32_matmul_precision() == "highest" or "tf32" not in rates:
        return profile
    return replace(profile, matrix_flops_per_second={**rates, "float32": rates["tf32"]})


def shipped_name(gpu: str) -> str | None:
    """The shipped profile of a GPU by the name that its driver reports; None if there is none of this model."""
    matching = (name for pattern, name in _SHIPPED if re.search(pattern, gpu, re.IGNORECASE))
    return next(matching, None)


def _nearest_name(device: torch.device) -> str:
    """The shipped profile of the GPU that is most alike in memory, number of multiprocessors and architecture."""
    if not device_available(device):
        return _FALLBACK
    if torch.version.hip is not None:
        return "mi300x"
    # Here, because it loads a part of Inductor that few processes need.
    from autockpt.inductor import gpu_properties

    this = torch.cuda.get_device_properties(device)

    def distance(name: str) -> float:
        """Sum of logarithms of ratios. Another capability counts: 8.0 is an A100 with HBM, 8.6 a card with GDDR."""
        gpu, _ = gpu_properties(name)
        major, minor = gpu.capability
        architecture = 1.0 if major != this.major else 0.5 if minor != this.minor else 0.0
        memory = abs(log(load_profile(name).memory_bytes / this.total_memory))
        return memory + abs(log(gpu.processors / this.multi_processor_count)) + architecture

    return min((name for name in shipped_profiles() if gpu_properties(name)[1]), key=distance)


def calibrated_path(device: torch.device) -> Path:
    """One file for each kind of hardware, because several machines may share a home folder."""
    return cache_folder() / "devices" / f"{_file_name(hardware_name(device))}.json"


def save_profile(profile: DeviceProfile, path: Path) -> None:
    """Write the file completely or, if interrupted, not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, profile_json(profile).encode())


def _file_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, stacklevel=3)
