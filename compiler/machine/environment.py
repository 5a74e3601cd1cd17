"""What this environment has that planning and compiling need, and how each framework in it reaches the backend."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata

import torch
from packaging.requirements import Requirement

from autockpt.cost_models import ProfileError
from autockpt.machine.cache import cache_folder
from autockpt.machine.hardware import default_device, hardware_name
from autockpt.machine.live_bytes import live_bytes
from autockpt.machine.memory import free_bytes, total_bytes
from autockpt.machine.profiles import calibrated_profile, shipped_name, shipped_profile
from autockpt.units import format_size

ENABLE = "autockpt.enable(memory_budget=...)"
FRAMEWORKS = {
    "transformers": f"Trainer: {ENABLE} before it, with torch_compile=True; its own list of backends refuses the name",
    "accelerate": f"{ENABLE} before Accelerator; its own list of backends refuses the name",
    "trl": f"as transformers: {ENABLE}",
    "peft": "nothing to do: compile the wrapped model",
    "lightning": 'torch.compile(model, backend="autockpt", options={...}) in the script, after lightning is imported',
    "diffusers": 'model.compile_repeated_blocks(backend="autockpt", options={...})',
    "timm": "train.py --torchcompile autockpt, options from AUTOCKPT_ variables",
    "torchtune": "TORCH_COMPILE_BACKEND=autockpt, options from AUTOCKPT_ variables",
    "torchtitan": f"compile.backend autockpt, options from AUTOCKPT_ variables; with FlexAttention {ENABLE}",
    "deepspeed": 'engine.compile(backend="autockpt", compile_kwargs={"options": {...}})',
}
"""How each framework reaches the backend, by the name of its distribution."""


@dataclass(frozen=True)
class Finding:
    subject: str
    found: str
    problem: str = ""
    """Why the backend cannot work, or does so with less, and what to do; empty where nothing is wrong."""
    fatal: bool = False
    """Nothing can be planned and compiled."""

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def examine() -> Iterator[Finding]:
    """All findings, those that decide first."""
    yield Finding("Python", f"{platform.python_version()}, {platform.system()}")
    for check in (_torch, _compiler, _triton):
        yield check()
    yield from _devices()
    for check in (_profile, _cache, _live_bytes):
        yield check()
    yield from _variables()
    yield from frameworks()


def frameworks(installed: Callable[[str], str | None] | None = None) -> Iterator[Finding]:
    """A finding for each framework that is installed; none of them is imported."""
    for name, how in FRAMEWORKS.items():
        if version := (installed or _version)(name):
            yield Finding(name, f"{version}: {how}")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _torch() -> Finding:
    required = next(r for line in metadata.requires("autockpt") or () if (r := Requirement(line)).name == "torch")
    found = f"{torch.__version__}, CUDA {torch.version.cuda or 'not built in'}"
    if required.specifier.contains(torch.__version__.partition("+")[0], prereleases=True):
        return Finding("torch", found)
    return Finding("torch", found, f"autockpt is written for torch {required.specifier}: install such a release")


def _compiler() -> Finding:
    named = os.environ.get("CXX", "g++")
    path = shutil.which(named)
    if path is None:
        advice = "Inductor generates C++ for the CPU: install g++, or name a compiler in CXX"
        return Finding("C++ compiler", f"{named} not found", advice, fatal=not torch.cuda.is_available())
    ran = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    first = (ran.stdout.splitlines() or [""])[0]
    if ran.returncode:
        return Finding("C++ compiler", path, f"`{named} --version` fails: {ran.stderr.strip()[:200]}", fatal=True)
    return Finding("C++ compiler", first)


def _triton() -> Finding:
    version = _version("triton")
    if version:
        return Finding("Triton", version)
    if torch.cuda.is_available():
        return Finding("Triton", "not installed", "Inductor needs it for GPU kernels: pip install triton", fatal=True)
    return Finding(
        "Triton", "not installed; `autockpt analyze --lower` for a GPU needs it: pip install 'autockpt[gpu]'"
    )


def _devices() -> Iterator[Finding]:
    found = [torch.device("cpu"), *(torch.device("cuda", index) for index in range(torch.cuda.device_count()))]
    for device in found:
        memory = f"{format_size(free_bytes(device))} free of {format_size(total_bytes(device))}"
        yield Finding(f"device {device}", f"{hardware_name(device)}: {memory}")


def _profile() -> Finding:
    device = default_device()
    try:
        if calibrated := calibrated_profile(device):
            return Finding("device profile", f"{calibrated.name}, calibrated on this machine")
    except ProfileError as error:
        return Finding("device profile", "unreadable", str(error))
    name = shipped_profile(device).name
    if device.type != "cpu" and shipped_name(hardware_name(device)) is None:
        return Finding("device profile", f"{name}, of another GPU", "run `autockpt calibrate` once on this machine")
    return Finding("device profile", f"{name}, shipped; `autockpt calibrate` fits one to this machine")


def _cache() -> Finding:
    folder = cache_folder()
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if os.access(existing, os.W_OK):
        return Finding("cache folder", str(folder))
    return Finding("cache folder", str(folder), "not writable: no timing or plan is stored; set AUTOCKPT_CACHE_DIR")


def _live_bytes() -> Finding:
    if live_bytes(default_device()).exact:
        return Finding("live bytes", "counted by the allocator")
    advice = "what only C++ holds is not counted in a step of several graphs: a C++ compiler is needed for that"
    return Finding("live bytes", "of tensors that Python sees", advice)


def _variables() -> Iterator[Finding]:
    for name, value in sorted(os.environ.items()):
        if name.startswith("AUTOCKPT_"):
            yield Finding(name, value)
