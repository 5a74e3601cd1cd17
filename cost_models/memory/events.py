"""Allocation events of the profiler: what was live on the CPU at the worst moment of a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch.profiler import ProfilerActivity, profile


def measured_peak(call: Callable[[], object]) -> int:
    """Largest number of bytes that are live at once during the call and were allocated by it, its results included."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        call()
    return _peak(_allocations(profiler))


def _allocations(profiler: Any) -> Iterator[tuple[int, int, int]]:
    """Time, address and size (negative for a free) of every allocation event, unordered."""
    pending = list(profiler.profiler.kineto_results.experimental_event_tree())
    while pending:
        event = pending.pop()
        pending.extend(event.children)
        if event.tag.name == "Allocation":
            yield event.start_time_ns, event.extra_fields.ptr, event.extra_fields.alloc_size


def _peak(events: Iterator[tuple[int, int, int]]) -> int:
    sizes: dict[int, int] = {}
    live = peak = 0
    for _, address, size in sorted(events, key=lambda event: event[0]):
        if size > 0:
            live += size - sizes.get(address, 0)
            sizes[address] = size
        else:
            # A block that was allocated before the step does not count; the profiler reports stale sizes for those.
            live -= sizes.pop(address, 0)
        peak = max(peak, live)
    return peak
