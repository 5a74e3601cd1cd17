"""The measured peak of a real step, from the allocation events of its device."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import torch

from autockpt.measure.quiet_profiler import quiet_profile

Step = Callable[[], object]


def measure_peak(step: Step, device: torch.device) -> int:
    """Largest number of live bytes during one step, less the bytes that were live before it."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        step()
        torch.cuda.synchronize(device)
        return int(torch.cuda.max_memory_allocated(device) - before)
    with quiet_profile(profile_memory=True) as profiler:
        step()
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
