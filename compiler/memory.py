"""What a device has: all of it, and what is free now."""

from __future__ import annotations

import os
from pathlib import Path

import torch

_CGROUP = Path("/sys/fs/cgroup/memory.max")


def total_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return min(_physical("SC_PHYS_PAGES"), _container_limit())


def free_bytes(device: torch.device) -> int:
    """What an allocation could still get, unused blocks in torch's own cache included."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))
    return min(_available(), _container_limit())


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
    try:
        text = _CGROUP.read_text().strip()
    except OSError:
        return 2**63
    return int(text) if text.isdigit() else 2**63
