"""Seconds of a collective: launch, latency of its steps, and the bytes that a rank sends over its link.

    seconds = launch + steps × latency + share × bytes / bandwidth

Of n ranks, a ring moves (n - 1) / n of the whole tensor through every rank for a gather, a scatter or an all-to-all,
and twice that for an all-reduce, which is a scatter and a gather (Thakur, Rabenseifner, Gropp 2005; Patarasuk, Yuan
2009). Libraries choose trees for short messages, so latency counts once for each halving of the group. Ranks of one
node are numbered one after the other; a group that leaves the node runs at the rate of the network. Launch and wait are
one cost.
"""

from __future__ import annotations

from math import ceil, log2

from autockpt.cost_models.device import DeviceProfile, Link
from autockpt.cost_models.work import RankGroup, Transfer

_HOST_LATENCY_SECONDS = 1e-5
"""Of a step between devices that have no link but the one to the host. Estimated."""
WAIT = "wait"
_TIMES_SENT = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}
"""How often a ring moves the whole tensor."""


def transfer_seconds(transfer: Transfer, device: DeviceProfile) -> float:
    """Seconds from the launch of a collective until its result is there; none for the wait."""
    count = transfer.group.size
    if transfer.kind == WAIT:
        return 0.0
    if count <= 1:
        return device.launch_seconds
    link, times = link_of(transfer.group, device), _TIMES_SENT.get(transfer.kind)
    # Sent to one rank or to all, a tensor passes the link once.
    share = times * (count - 1) / count if times else 1.0
    latency = (times or 1) * ceil(log2(count)) * link.latency_seconds
    return device.launch_seconds + latency + share * transfer.nbytes / link.bytes_per_second


def link_of(group: RankGroup, device: DeviceProfile) -> Link:
    """The slowest link between these ranks."""
    for link in device.links:
        if not link.ranks or group.first // link.ranks == group.last // link.ranks:
            return link
    return Link(0, device.host_bytes_per_second, _HOST_LATENCY_SECONDS)
