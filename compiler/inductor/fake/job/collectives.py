"""Collectives and messages that eager code runs on a process group, as transfers with a price."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.utils._pytree import tree_leaves

from autockpt.cost_models import RankGroup, Transfer

_NAMESPACE = "c10d"
_KINDS = {
    "_allgather_base_": "all_gather",
    "allgather_": "all_gather",
    "allgather_into_tensor_coalesced_": "all_gather",
    "_reduce_scatter_base_": "reduce_scatter",
    "reduce_scatter_": "reduce_scatter",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter",
    "allreduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce",
    "alltoall_": "all_to_all",
    "alltoall_base_": "all_to_all",
    "broadcast_": "broadcast",
    "scatter_": "broadcast",
    "gather_": "broadcast",
    "send": "send",
    "recv_": "send",
}
_ONE_PEER = "send"


def c10d_transfer(func: Any, args: Sequence[Any]) -> Transfer | None:
    """What a call of `c10d` moves; None of every other operator."""
    namespace, _, name = func._schema.name.partition("::")
    if namespace != _NAMESPACE or name not in _KINDS:
        return None
    kind, group = _KINDS[name], _group(args)
    # Of what a rank has and what all have together the larger is the whole tensor.
    nbytes = max((sum(map(_bytes, _tensors([arg]))) for arg in args), default=0)
    ranks = dist.get_process_group_ranks(group)
    if kind == _ONE_PEER:
        place = next(arg for arg in args if isinstance(arg, int))
        ranks = [dist.get_rank(), ranks[place]]
    return Transfer(kind, nbytes, RankGroup(len(ranks), min(ranks), max(ranks)))


def buffers_of(args: Sequence[Any]) -> list[torch.Tensor]:
    """What a collective reads and writes."""
    return _tensors(args)


def _group(args: Iterable[Any]) -> Any:
    boxed = next(arg for arg in args if isinstance(arg, torch.ScriptObject))
    return dist.ProcessGroup.unbox(boxed)


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.itemsize
