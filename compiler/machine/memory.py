"""Memory of a device: in total, free now, and set aside for libraries.

Of a CPU it is what the process may use: the machine's memory, or the limit of its container (a cgroup, version 2).
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from pathlib import Path

import torch

from autockpt.cost_models.memory import cublas_bytes

_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")
_NO_LIMIT = 2**60
_FREE_SHARE = 0.5
"""Of the machine's memory: taken as free where the system does not report it."""


def total_bytes(device: torch.device) -> int:
    """All memory of a GPU; of any other device what the process may use."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return min(_physical_bytes(), _container_limit())


def free_bytes(device: torch.device) -> int:
    """What can still be allocated, unused blocks of torch's caching allocator included."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))
    return max(min(_available_bytes(), _container_limit() - _container_use()), 0)


def library_bytes(device: torch.device) -> int:
    """What libraries allocate through torch in no graph: cuBLAS has a workspace from its first matmul on."""
    if device.type != "cuda":
        return 0
    return cublas_bytes(torch.cuda.get_device_capability(device), os.environ.get("CUBLAS_WORKSPACE_CONFIG"))


def _available_bytes() -> int:
    """Free memory of the machine; without a report of the system, as on macOS, a share of all its memory."""
    try:
        lines = _MEMINFO.read_text().splitlines()
        kib = next(line for line in lines if line.startswith("MemAvailable")).split()[1]
        return int(kib) * 1024
    except (OSError, StopIteration):
        pass
    try:
        return _pages("SC_AVPHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        _warn_once(
            f"autockpt: this system does not report its free memory, and {_FREE_SHARE:.0%} of all memory is taken as "
            'free; set memory_budget to a size such as "12GiB" to choose'
        )
        return int(_physical_bytes() * _FREE_SHARE)


def _physical_bytes() -> int:
    try:
        return _pages("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        _warn_once(
            "autockpt: this system does not report how much memory it has, and it is taken as unlimited; "
            'set memory_budget to a size such as "12GiB"'
        )
        return _NO_LIMIT


def _pages(name: str) -> int:
    """Bytes of a number of pages that `sysconf` reports. It does not exist on Windows, nor every name on macOS."""
    pages = os.sysconf(name)
    if pages < 0:
        raise ValueError(f"{name} is undefined")
    return pages * os.sysconf("SC_PAGE_SIZE")


def _container_limit() -> int:
    text = _read("memory.max")
    return int(text) if text.isdigit() else _NO_LIMIT


def _container_use() -> int:
    """What the container cannot reclaim. `memory.current` counts the page cache too, of which `inactive_file` is given
    up before anything is refused; container runtimes report the same difference as the working set."""
    text = _read("memory.current")
    if not text.isdigit():
        return 0
    fields = dict(line.split(maxsplit=1) for line in _read("memory.stat").splitlines() if " " in line)
    return max(int(text) - int(fields.get("inactive_file", 0)), 0)


def _read(name: str) -> str:
    """A file of this process's container; empty if there is none."""
    try:
        return (_CGROUP / name).read_text().strip()
    except OSError:
        return ""


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=3)
