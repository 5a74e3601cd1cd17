"""Seconds of the operators of a joint graph, measured on its device: each distinct call is run and timed once.

Timed are operators that run as kernels of their own. With `lower="eager"` these are all but views. With Inductor they
are the extern kernels: matmuls, convolutions, attention and whatever else Inductor does not generate; a loop that is
fused costs what it adds to its kernel, which cannot be timed alone, and is priced by the device profile. So are
operators that mutate inputs, communicate with other processes or have subgraphs, those that nobody vouched for, which
may have a state, and those with a formula that read indices, because their time depends on values that do not exist
yet. A convolution is timed in the layout that was
traced, which Inductor may change.

Timings differ from run to run. Processes that share a cache folder agree on them, but ranks on several machines, or a
process that exceeds the time limit, may plan differently. A timing taken while the machine was busy stays in use until
the folder `timings` of the cache is deleted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from autockpt.cost_models import seconds_of
from autockpt.inductor import NotRunnable, RunnableCall
from autockpt.machine.cache import TimingCache
from autockpt.machine.hardware import device_available, timing_conditions
from autockpt.machine.time_call import time_call, undisturbed
from autockpt.machine.workspaces import measure_workspaces
from autockpt.passes.graph import JointGraph, Kind, Trait, Value
from autockpt.passes.problem import Lowering, Setup, is_held, work_of_value

log = logging.getLogger("autockpt")

_NOT_TIMED = {Trait.MUTATES, Trait.COLLECTIVE, Trait.EFFECT, Trait.OPAQUE, Trait.SEED}
_LIMIT_SECONDS = {"measured": 20.0, "profile": 2.0}
"""For one graph, by the option `cost`."""
CallOf = Callable[[str], RunnableCall]
"""The operator call of a value, by its name; raises `NotRunnable`."""


@dataclass(frozen=True)
class GraphTimings:
    seconds: Mapping[str, float] = field(default_factory=dict)
    """By the name of each value whose operator was timed, now or before."""
    timed: int = 0
    """Distinct calls that were timed now."""
    cached: int = 0
    """Distinct calls whose timing was in the cache."""
    workspaces: Mapping[str, int] = field(default_factory=dict)
    """Bytes that operators allocate inside themselves, by value, where they were measured: with `lower="eager"`."""
    left: tuple[str, ...] = ()
    """Operators that should have been timed and are priced by the profile, each with the reason."""


@dataclass(frozen=True)
class _Timeable:
    """One distinct call, and the values that it computes."""

    call: RunnableCall
    key: str
    values: list[Value] = field(default_factory=list)


def time_graph(call_of: CallOf, graph: JointGraph, setup: Setup, cost: str, cache: TimingCache) -> GraphTimings:
    """With cost "measured" time every kernel of its own; with "profile" only operators that have no formula."""
    started = time.perf_counter()
    left: list[str] = []
    distinct = _distinct(call_of, graph, setup, cost, left)
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
    workspaces = measure_workspaces(call_of, graph, setup)
    return GraphTimings(by_value, len(timed), len(seconds), workspaces, tuple(left))


def _distinct(call_of: CallOf, graph: JointGraph, setup: Setup, cost: str, left: list[str]) -> list[_Timeable]:
    """The distinct calls to time, from most to least work; reasons why others cannot be timed are added to `left`."""
    found: dict[str, _Timeable] = {}
    for value in graph.values:
        if not _is_timed(graph, value, setup.lowering, cost):
            continue
        try:
            _check_vouched(value, setup)
            call = call_of(value.name)
            _check_timeable(call, setup.device.kind, work_of_value(graph, value).estimated)
        except NotRunnable as reason:
            _leave(left, value.operator, reason)
            continue
        key = f"{call.key}; {timing_conditions(call.device)}"
        found.setdefault(key, _Timeable(call, key)).values.append(value)

    def work(one: _Timeable) -> float:
        return len(one.values) * seconds_of(work_of_value(graph, one.values[0]), setup.device)

    return sorted(found.values(), key=work, reverse=True)


def _is_timed(graph: JointGraph, value: Value, lowering: Lowering, cost: str) -> bool:
    if not value.kind.runs or value.spec is None or value.traits & _NOT_TIMED:
        return False
    if cost == "profile":
        return value.kind is Kind.EXTERN and work_of_value(graph, value).estimated
    return value.kind is Kind.EXTERN or lowering is Lowering.EAGER


def _check_vouched(value: Value, setup: Setup) -> None:
    if is_held(value, setup.allowed):
        raise NotRunnable(
            "running it might change a state of its own; autockpt.allow_recompute vouches that it does not"
        )


def _check_timeable(call: RunnableCall, profiled: str, estimated: bool) -> None:
    if _may_communicate(call):
        raise NotRunnable("it may communicate with other processes, which would wait for it")
    if call.device.type != profiled or not device_available(call.device):
        raise NotRunnable(f"it runs on a {call.device.type} and is priced for a {profiled}")
    if not estimated and any(layout.holds_indices for layout in call.layouts):
        raise NotRunnable("how long it takes depends on indices")


def _may_communicate(call: RunnableCall) -> bool:
    """Whether it is a custom operator in a job of several ranks: they would time it different numbers of times."""
    several = torch.distributed.is_available() and torch.distributed.is_initialized()
    return several and torch.distributed.get_world_size() > 1 and not str(call.target).startswith(("aten.", "prims."))


def _time(new: Sequence[_Timeable], deadline: float, cache: TimingCache, left: list[str]) -> dict[str, float]:
    """Each twice, with the others between, and the smaller counts: another program seldom slows down both."""
    best: dict[str, float] = {}
    failed: set[str] = set()
    for one in (*new, *new):
        if one.key in failed:
            continue
        try:
            with undisturbed(one.call.device):
                seconds = time_call(one.call, deadline)
        except Exception as error:  # A custom operator may raise anything on random numbers; the profile prices it.
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
