"""What a device has: all of it, what is free now, and what libraries will take of it."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from autockpt.cost_models.memory import cublas_bytes

_CGROUP = Path("/sys/fs/cgroup")


def total_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return min(_physical("SC_PHYS_PAGES"), _container_limit())


def free_bytes(device: torch.device) -> int:
    """What an allocation could still get, unused blocks in torch's own cache included."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))
    return min(_available(), _container_limit() - _container_use())


def library_bytes(device: torch.device) -> int:
    """What torch allocates for libraries beside any graph: cuBLAS has a workspace from its first matmul on."""
    if device.type != "cuda":
        return 0
    return cublas_bytes(torch.cuda.get_device_capability(device), os.environ.get("CUBLAS_WORKSPACE_CONFIG"))


def _available() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return _physical("SC_AVPHYS_PAGES")
    kib = next(line for line in lines if line.startswith("MemAvailable")).split()[1]
    return int(kib) * 1024


def _physical(pages: str) -> int:
    return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")


def _container_limit() -> int:
    """What this process's container may use; without one, or without a limit, no bound."""
    return _read("memory.max", 2**63)


def _container_use() -> int:
    return _read("memory.current", 0)


def _read(name: str, otherwise: int) -> int:
    try:
        text = (_CGROUP / name).read_text().strip()
    except OSError:
        return otherwise
    return int(text) if text.isdigit() else otherwise
