"""`autockpt calibrate --links`, by every rank of a job that torchrun starts: links of the profile of this hardware."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from autockpt.errors import AutockptError

if TYPE_CHECKING:
    import torch

    from autockpt.cost_models import DeviceProfile
    from autockpt.cost_models.calibration import TimedLink

_ALONE = (
    "--links times collectives between ranks, and this is one process; for a node with 8 devices: "
    "torchrun --nproc-per-node 8 -m autockpt calibrate --links"
)


def calibrate_links(device: torch.device, path: Path, *, as_json: bool) -> int:
    """All ranks time; the first writes the calibrated profile, or the shipped one, with the links that were found."""
    import torch
    import torch.distributed as dist

    from autockpt.cost_models.calibration import time_links
    from autockpt.machine import find_profile, save_profile

    ranks_of_node, rank = int(os.environ.get("LOCAL_WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    if int(os.environ.get("WORLD_SIZE", 1)) < 2:
        raise AutockptError(_ALONE)
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    profile = find_profile(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        timed = time_links(device, ranks_of_node, profile.launch_seconds)
        if rank == 0:
            save_profile(replace(profile, links=tuple(one.link for one in timed)), path)
            _print(timed, profile, as_json=as_json)
            if not as_json:
                print(f"profile: {path}")
        dist.barrier()
    finally:
        dist.destroy_process_group()
    return 0


def _print(timed: tuple[TimedLink, ...], profile: DeviceProfile, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([asdict(one) | {"error": one.error(profile)} for one in timed], indent=1))
        return
    for one in timed:
        where = f"{one.link.ranks} ranks of a node" if one.link.ranks else "ranks of several nodes"
        rate, latency = one.link.bytes_per_second / 1e9, one.link.latency_seconds * 1e6
        print(
            f"{where}: {rate:.2f} GB/s, {latency:.0f} µs a step, from {len(one.gathers)} all-gathers of {one.count} "
            f"ranks, within {one.error(profile):.0%}"
        )
