"""Which profile a device has: the calibrated one of this machine where there is one, else the shipped one that fits."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from autockpt.cost_models import DeviceProfile, ProfileError, load_profile
from autockpt.cost_models.profiles import profile_json, read_profile
from autockpt.files import write_file
from autockpt.machine.cache import cache_folder
from autockpt.machine.hardware import describe

FALLBACK = "a100-80gb"
# By what drivers call them; the first that matches.
_NAMES = (
    (r"\bH100\b.*PCIe", "h100-pcie"),
    (r"\bH100\b", "h100-sxm"),
    (r"\bG?H200\b", "h200"),
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


def find_profile(device: torch.device) -> DeviceProfile:
    """A calibrated profile that cannot be read is no reason not to train: it is said once, and a shipped one serves."""
    try:
        found = calibrated_profile(device)
    except ProfileError as error:
        _say_once(str(error))
        found = None
    return found or shipped_profile(device)


def calibrated_profile(device: torch.device) -> DeviceProfile | None:
    """None where there is none; a file that cannot be used raises."""
    try:
        return read_profile(calibrated_path(device))
    except ProfileError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        told = f"{error}; the shipped profile is used instead, `autockpt calibrate` writes a new one"
        raise ProfileError(told) from error


def shipped_profile(device: torch.device) -> DeviceProfile:
    return with_tf32(load_profile("cpu" if device.type == "cpu" else shipped_name(hardware_name(device))))


def with_tf32(profile: DeviceProfile) -> DeviceProfile:
    """Float32 matmuls at the precision that torch is set to."""
    rates = profile.matrix_flops_per_second
    if torch.get_float32_matmul_precision() == "highest" or "tf32" not in rates:
        return profile
    return replace(profile, matrix_flops_per_second={**rates, "float32": rates["tf32"]})


def shipped_name(gpu: str) -> str:
    found = (name for pattern, name in _NAMES if re.search(pattern, gpu, re.IGNORECASE))
    return next(found, FALLBACK)


def calibrated_path(device: torch.device) -> Path:
    """One file for each kind of hardware: a home folder may be shared by many machines."""
    return cache_folder() / "devices" / f"{_file_name(hardware_name(device))}.json"


def hardware_name(device: torch.device) -> str:
    """The model of a GPU; of a CPU also its instructions and threads."""
    if device.type not in ("cpu", "cuda") or (device.type == "cuda" and not torch.cuda.is_available()):
        return device.type
    return describe(device).partition("; ")[0]


def default_device() -> torch.device:
    return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def save_profile(profile: DeviceProfile, path: Path) -> None:
    """All of it or nothing, whatever interrupts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, profile_json(profile).encode())


def _file_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


@cache
def _say_once(message: str) -> None:
    warnings.warn(message, stacklevel=3)
