"""Time all-gathers between the ranks of a job, and fit the links of a device profile to them.

By `cost_models.links` a gather of n ranks takes `launch + steps × latency + share × bytes / bandwidth`: a line in its
bytes, fitted to the quietest of several readings at each size, where the slowest rank counts. Every reading weighs the
same, however long it took.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from autockpt.cost_models.device import DeviceProfile, Link
from autockpt.cost_models.links import transfer_seconds
from autockpt.cost_models.work import RankGroup, Transfer

_BYTES = tuple(2**power for power in range(12, 27, 2))
"""Of the gathered tensors: 4 KiB to 64 MiB."""
_READINGS = 5


@dataclass(frozen=True)
class TimedGather:
    nbytes: int
    """Of the gathered tensor."""
    seconds: float


@dataclass(frozen=True)
class TimedLink:
    link: Link
    count: int
    """Ranks of the group that was timed."""
    gathers: tuple[TimedGather, ...]

    def error(self, device: DeviceProfile) -> float:
        """The largest relative error of what the cost model says of these gathers, on this device with this link."""
        linked, group = replace(device, links=(self.link,)), RankGroup(self.count, 0, self.count - 1)
        fitted = (transfer_seconds(Transfer("all_gather", one.nbytes, group), linked) for one in self.gathers)
        return max(abs(seconds / one.seconds - 1) for seconds, one in zip(fitted, self.gathers, strict=True))


def time_links(device: torch.device, ranks_of_node: int, launch_seconds: float) -> tuple[TimedLink, ...]:
    """Between the ranks of a node, where there are several, and between all of the job, where those are more.

    To be called by all ranks of an initialized job, which get the same figures.
    """
    found, world = [], dist.get_world_size()
    if 1 < ranks_of_node < world:
        nodes = [list(range(first, first + ranks_of_node)) for first in range(0, world, ranks_of_node)]
        groups = [dist.new_group(ranks) for ranks in nodes]
        gathers = _time_gathers(device, groups[dist.get_rank() // ranks_of_node])
        found.append(TimedLink(fit_link(gathers, ranks_of_node, ranks_of_node, launch_seconds), ranks_of_node, gathers))
    gathers = _time_gathers(device, None)
    ranks = 0 if found else ranks_of_node
    return (*found, TimedLink(fit_link(gathers, world, ranks, launch_seconds), world, gathers))


def fit_link(gathers: Sequence[TimedGather], count: int, ranks: int, launch_seconds: float) -> Link:
    """The link of `count` ranks that were timed, which `ranks` of a profile's link share."""
    nbytes = np.array([one.nbytes for one in gathers], dtype=float)
    seconds = np.array([one.seconds for one in gathers])
    slope, start = np.polyfit(nbytes, seconds, 1, w=1 / seconds)
    rate = (count - 1) / count / max(float(slope), 1e-15)
    return Link(ranks, rate, max(float(start) - launch_seconds, 0.0) / ceil(log2(count)))


def _time_gathers(device: torch.device, group: Any) -> tuple[TimedGather, ...]:
    count = dist.get_world_size(group)
    return tuple(TimedGather(nbytes, _time_gather(device, group, nbytes // count // 4, count)) for nbytes in _BYTES)


def _time_gather(device: torch.device, group: Any, elements: int, count: int) -> float:
    part, whole = torch.ones(elements, device=device), torch.empty(elements * count, device=device)

    def gather() -> None:
        dist.all_gather_into_tensor(whole, part, group=group)
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    gather()
    quietest = min(_reading(gather, group) for _ in range(_READINGS))
    slowest = torch.tensor(quietest, dtype=torch.float64, device=device)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return float(slowest)


def _reading(gather: Callable[[], None], group: Any) -> float:
    dist.barrier(group)
    started = time.perf_counter()
    gather()
    return time.perf_counter() - started
