"""Memory of a device: in total, free now, and set aside for libraries.

Of a CPU it is what the process may use: the machine's memory, or the limit of its container (a cgroup, version 2).
"""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import torch

from autockpt.cost_models.memory import cublas_bytes

_CGROUP = Path("/sys/fs/cgroup")
_NO_LIMIT = 2**60
_HOST_SHARE = 0.8


def total_bytes(device: torch.device) -> int:
    """All memory of a GPU; of any other device what the process may use."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return min(psutil.virtual_memory().total, _container_limit())


def free_bytes(device: torch.device) -> int:
    """What can still be allocated, unused blocks of torch's caching allocator included."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))
    return max(min(psutil.virtual_memory().available, _container_limit() - _container_use()), 0)


def offload_bytes(offload: bool | str, limit_bytes: int) -> int:
    """How much this process may keep on the host for the option `offload`, whose size, if any, is `limit_bytes`.

    Without one: 80 % of what is free, divided by the processes of this host (LOCAL_WORLD_SIZE, as torchrun sets it),
    in whole GiB: every rank of a host then finds the same, and a run finds what the last one did.
    """
    if not offload or limit_bytes:
        return limit_bytes
    processes = max(int(os.environ.get("LOCAL_WORLD_SIZE", "1")), 1)
    share = int(_HOST_SHARE * free_bytes(torch.device("cpu"))) // processes
    return share // 2**30 * 2**30 or share


def library_bytes(device: torch.device) -> int:
    """What libraries allocate through torch in no graph: cuBLAS has a workspace from its first matmul on."""
    if device.type != "cuda":
        return 0
    return cublas_bytes(torch.cuda.get_device_capability(device), os.environ.get("CUBLAS_WORKSPACE_CONFIG"))


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
