"""Seconds of the graph in hand on the device in hand: each distinct operation and shape is run and timed once.

Timed is what runs as a kernel of its own. With `lower="eager"` that is every operation that is not a view. Under
Inductor it is matmuls, convolutions, attention and whatever else Inductor calls and does not write itself; loops that
it fuses cost what they add to a kernel, which nobody can time alone, and stay with the profile. So do operations that
write to their inputs, talk to other processes or hold graphs of their own, and those that have a formula and read
indices: how long these take depends on values that are not there yet. A convolution is timed in the layout that was
traced, which Inductor may change.

Timings differ from run to run. Processes that share a cache folder agree on them, but ranks on several machines, or
one that runs into the time limit, may plan differently. A processor that is busy with something else is timed as it
is, and what was timed then holds until the folder `timings` of the cache is deleted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import fx

from autockpt.cost_models import seconds_of
from autockpt.inductor import NotRunnable, RunnableCall, runnable_call
from autockpt.machine.cache import TimingCache
from autockpt.machine.hardware import describe, device_available
from autockpt.machine.time_call import time_call, undisturbed
from autockpt.passes.graph import JointGraph, Kind, Trait, Value
from autockpt.passes.problem import Lowering, Setup, work_of_value

log = logging.getLogger("autockpt")

_NEVER_ALONE = {Trait.MUTATES, Trait.COLLECTIVE, Trait.EFFECT, Trait.OPAQUE, Trait.SEED}
_LIMIT_SECONDS = {"measured": 20.0, "profile": 2.0}
"""Of timing one graph."""


@dataclass(frozen=True)
class GraphTimings:
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Of every value whose operation was timed."""
    timed: int = 0
    cached: int = 0
    left: tuple[str, ...] = ()
    """Operations whose seconds are the profile's after all, each with the reason."""


@dataclass(frozen=True)
class _Timeable:
    """One operation on tensors of one kind, and the values that it makes."""

    call: RunnableCall
    key: str
    values: list[Value] = field(default_factory=list)


def time_graph(gm: fx.GraphModule, graph: JointGraph, setup: Setup, cost: str, cache: TimingCache) -> GraphTimings:
    """With cost "measured", of all that runs alone; with "profile", only of what no formula knows."""
    started = time.perf_counter()
    left: list[str] = []
    distinct = _distinct(gm, graph, setup, cost, left)
    found = {one.key: cache.find(one.key) for one in distinct}
    seconds = {key: known for key, known in found.items() if known is not None}
    new = [one for one in distinct if one.key not in seconds]
    timed = _time(new, started + _LIMIT_SECONDS[cost], cache, left)
    if distinct or left:
        spent = time.perf_counter() - started
        counts = (len(timed), spent, len(seconds), len(left))
        log.info("timed %d operators in %.1f s, %d from cache, %d left to the profile", *counts)
    by_key = seconds | timed
    by_value = {value.name: by_key[one.key] for one in distinct if one.key in by_key for value in one.values}
    return GraphTimings(by_value, len(timed), len(seconds), tuple(left))


def _distinct(gm: fx.GraphModule, graph: JointGraph, setup: Setup, cost: str, left: list[str]) -> list[_Timeable]:
    """Whatever is to be timed, from most to least work; what cannot be is added to `left`."""
    nodes = {node.name: node for node in gm.graph.nodes}
    found: dict[str, _Timeable] = {}
    for value in graph.values:
        if not _is_asked(graph, value, setup.lowering, cost):
            continue
        try:
            call = _call(nodes[value.name], setup.device.kind, work_of_value(graph, value).estimated)
        except NotRunnable as unreal:
            _leave(left, value.operator, unreal)
            continue
        key = f"{call.key}; {describe(call.device)}"
        found.setdefault(key, _Timeable(call, key)).values.append(value)

    def work(one: _Timeable) -> float:
        return len(one.values) * seconds_of(work_of_value(graph, one.values[0]), setup.device)

    return sorted(found.values(), key=work, reverse=True)


def _is_asked(graph: JointGraph, value: Value, lowering: Lowering, cost: str) -> bool:
    if not value.kind.runs or value.spec is None or value.traits & _NEVER_ALONE:
        return False
    if cost == "profile":
        return value.kind is Kind.EXTERN and work_of_value(graph, value).estimated
    return value.kind is Kind.EXTERN or lowering is Lowering.EAGER


def _call(node: fx.Node, profiled: str, estimated: bool) -> RunnableCall:
    call = runnable_call(node)
    if _may_talk(node):
        raise NotRunnable("it may talk to other processes, which would wait for it")
    if call.device.type != profiled or not device_available(call.device):
        raise NotRunnable(f"it runs on a {call.device.type} and is priced for a {profiled}")
    if not estimated and any(layout.holds_indices for layout in call.layouts):
        raise NotRunnable("how long it takes depends on indices")
    return call


def _may_talk(node: fx.Node) -> bool:
    """An operator of somebody else's in a step of several processes: how often it is timed differs between them."""
    several = torch.distributed.is_available() and torch.distributed.is_initialized()
    return several and torch.distributed.get_world_size() > 1 and not str(node.target).startswith(("aten.", "prims."))


def _time(new: Sequence[_Timeable], deadline: float, cache: TimingCache, left: list[str]) -> dict[str, float]:
    """Twice each, some moments apart, and the better counts: what slows a machine down for a while seldom stays."""
    best: dict[str, float] = {}
    failed: set[str] = set()
    for one in (*new, *new):
        if one.key in failed:
            continue
        try:
            with undisturbed(one.call.device):
                seconds = time_call(one.call, deadline)
        except Exception as error:  # Whatever a foreign operator raises on made-up numbers, the profile knows a price.
            failed.add(one.key)
            if one.key not in best:
                _leave(left, str(one.call.target), error)
        else:
            best[one.key] = min(seconds, best.get(one.key, seconds))
    return {key: cache.publish(key, seconds) for key, seconds in best.items()}


def _leave(left: list[str], operator: str, error: Exception) -> None:
    reason = str(error) if isinstance(error, NotRunnable) else f"it raised {type(error).__name__}: {error}"
    if (line := f"{operator}: {reason}") not in left:
        log.debug("not timed: %s", line)
        left.append(line)
