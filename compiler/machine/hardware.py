"""The device that tensors are on, as far as it decides how long a kernel takes."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

import torch


def device_available(device: torch.device) -> bool:
    """Whether kernels can be timed there."""
    return device.type == "cpu" or (device.type == "cuda" and torch.cuda.is_available())


def describe(device: torch.device) -> str:
    """What two timings must have in common to be of the same thing, the operation aside."""
    if device.type == "cuda":
        hardware = torch.cuda.get_device_name(device)
    else:
        capability = torch.backends.cpu.get_cpu_capability()
        hardware = f"{_processor()}, {capability}, {torch.get_num_threads()} threads"
    precision = torch.get_float32_matmul_precision()
    exact = "deterministic" if torch.are_deterministic_algorithms_enabled() else "any"
    return f"{hardware}; torch {torch.__version__}, {precision} matmuls, {exact} algorithms"


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
