"""Which ranks may compile the graphs that this one compiles, and are worth waiting for.

Stages of a pipeline compile other graphs, one after the other: a stage gets its first input when the stage before it
has compiled. To wait for such a rank is to wait for nothing. Without a pipeline all ranks of the job are asked; with
one, the ranks of every process group that this rank is in and none of its pipeline's other stages. Least figures of
groups that cross, such as the rows and columns of a mesh, are the least of all their ranks.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import torch.distributed as dist

from autockpt.inductor import joined_groups

_STAGES, _FSDP = "torch.distributed.pipelining.stage", "torch.distributed.fsdp"
Ranks = tuple[int, ...]


def peer_groups() -> list[Ranks]:
    """Groups of ranks to agree with, one after the other; none where this process is the only one."""
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return []
    if dist.get_backend() == "fake":
        # One process plays a rank of a job that is not here.
        return []
    return eligible(joined_groups(), _other_stages())


def eligible(groups: Iterable[Ranks], others: frozenset[int]) -> list[Ranks]:
    """The largest of these groups without any of these ranks, in their order, which is the same on all ranks."""
    found = [group for group in dict.fromkeys(groups) if len(group) > 1 and others.isdisjoint(group)]
    return [group for group in found if not any(set(group) < set(other) for other in found)]


def pipeline_calls() -> int:
    """How many micro-batches may be in flight on a stage of a pipeline in this process; 0 without a pipeline."""
    return max((stage.chunks or stage.num_stages for stage in _stages()), default=0)


def largest_unit_bytes() -> int:
    """Of the units of FSDP2 in this process: the parameters of one, gathered; 0 without FSDP2."""
    module = sys.modules.get(_FSDP)
    if module is None:
        return 0
    units = [thing for thing in gc.get_objects() if issubclass(type(thing), module.FSDPModule)]
    inside = {id(unit): {id(p) for p in unit.parameters()} for unit in units}
    most = 0
    for unit in units:
        nested = set[int]().union(
            *(inside[id(other)] for other in unit.modules() if other is not unit and id(other) in inside)
        )
        most = max(most, sum(p.numel() * p.element_size() for p in unit.parameters() if id(p) not in nested))
    return most


def _other_stages() -> frozenset[int]:
    """Ranks of the pipelines that this process has stages of, without this rank."""
    return frozenset(rank for stage in _stages() for rank in _ranks(stage.group)) - {dist.get_rank()}


def _stages() -> list[Any]:
    module = sys.modules.get(_STAGES)
    if module is None:
        return []
    return [thing for thing in gc.get_objects() if issubclass(type(thing), module._PipelineStageBase)]


def _ranks(group: dist.ProcessGroup | None) -> Sequence[int]:
    return dist.get_process_group_ranks(group or dist.group.WORLD)
