"""The name of the hardware that a device is, as far as it decides how long a kernel takes."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

import torch


def default_device() -> torch.device:
    """The first GPU, or the CPU."""
    return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def device_available(device: torch.device) -> bool:
    """Whether kernels can be run and timed on this device: a CPU, or a GPU that CUDA finds."""
    return device.type == "cpu" or (device.type == "cuda" and torch.cuda.is_available())


def hardware_name(device: torch.device) -> str:
    """The model of a GPU; of a CPU also its vector instructions and threads; the type of any other device."""
    if not device_available(device):
        return device.type
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{_processor()}, {torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads"


def timing_conditions(device: torch.device) -> str:
    """All that must be equal for two timings of one operator call to be comparable."""
    precision = torch.get_float32_matmul_precision()
    algorithms = "deterministic" if torch.are_deterministic_algorithms_enabled() else "any"
    return f"{hardware_name(device)}; torch {torch.__version__}, {precision} matmuls, {algorithms} algorithms"


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
