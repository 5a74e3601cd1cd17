"""Allocation events of the profiler: what was live on the CPU at the worst moment of a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from torch.profiler import record_function

from autockpt.cost_models.memory.quiet_profiler import quiet_profile

_CALL = "autockpt: call "


class _Allocation(NamedTuple):
    time: int
    address: int
    size: int
    """Negative for a free."""


def measured_peak(call: Callable[[], object]) -> int:
    """Largest number of bytes that are live at once during the call and were allocated by it, its results included."""
    return measured_peaks([call])[0]


def measured_peaks(calls: Sequence[Callable[[], object]]) -> list[int]:
    """The same for several calls, one after the other under one profiler: it takes a fifth of a second to start."""
    with quiet_profile(profile_memory=True) as profiler:
        for number, call in enumerate(calls):
            with record_function(f"{_CALL}{number}"):
                call()
    events = list(_events(profiler))
    spans = sorted((e.start_time_ns, e.end_time_ns) for e in events if e.name.startswith(_CALL))
    allocations = sorted(_allocations(events))
    return [_peak(a for a in allocations if start <= a.time <= end) for start, end in spans]


def _events(profiler: Any) -> Iterator[Any]:
    pending = list(profiler.profiler.kineto_results.experimental_event_tree())
    while pending:
        event = pending.pop()
        pending.extend(event.children)
        yield event


def _allocations(events: Iterable[Any]) -> Iterator[_Allocation]:
    for event in events:
        if event.tag.name == "Allocation":
            yield _Allocation(event.start_time_ns, event.extra_fields.ptr, event.extra_fields.alloc_size)


def _peak(allocations: Iterable[_Allocation]) -> int:
    sizes: dict[int, int] = {}
    live = peak = 0
    for allocation in allocations:
        if allocation.size > 0:
            live += allocation.size - sizes.get(allocation.address, 0)
            sizes[allocation.address] = allocation.size
        else:
            # A block that was allocated before the call does not count; the profiler reports stale sizes for those.
            live -= sizes.pop(allocation.address, 0)
        peak = max(peak, live)
    return peak
