"""Which blocks were live at each moment of a snapshot's trace.

A trace is the last part of a history: torch keeps so many events and drops older ones. What is known for certain is the
end: the blocks in the snapshot's segments. So the trace is walked backwards from there, which gives the blocks and the
reserved bytes before its first event, and then forwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from autockpt.diagnose.snapshot_file import Event, Segment, Snapshot
from autockpt.errors import AutockptError

_GROWS = ("segment_alloc", "segment_map")
_SHRINKS = ("segment_free", "segment_unmap")
_ACTIVE = ("active_allocated", "active_awaiting_free", "active_pending_free")


@dataclass(frozen=True, eq=False)
class LiveBlock:
    """An allocation, from its `alloc` to its `free_completed`."""

    address: int
    nbytes: int
    frames: Any = ()
    category: str = ""
    allocated: int | None = None
    """Number of the event; None where it was allocated before the trace begins."""
    freed: int | None = None
    """Number of the event; None where it is live at the end."""
    freed_by: Any = ()
    """The stack of that event."""


@dataclass(frozen=True)
class History:
    """One device's blocks over the events of its trace."""

    device: int
    events: tuple[Event, ...]
    blocks: tuple[LiveBlock, ...]
    """All that were live at some moment, in the order of their allocation."""
    live_bytes: tuple[int, ...]
    """After each event."""
    reserved_bytes: tuple[int, ...]
    """Held by the caching allocator after each event."""
    at_end: tuple[LiveBlock, ...] = field(repr=False)
    segments: tuple[Segment, ...] = field(repr=False)

    @property
    def failed(self) -> int | None:
        """Number of the last allocation that failed."""
        return next((n for n in range(len(self.events) - 1, -1, -1) if self.events[n].action == "oom"), None)

    @property
    def peak(self) -> int | None:
        """Number of the event after which most bytes were live; None without a trace."""
        return max(range(len(self.events)), key=self.live_bytes.__getitem__, default=None)

    def live_at(self, event: int | None) -> tuple[LiveBlock, ...]:
        """After this event; at the end where None."""
        if event is None:
            return self.at_end
        return tuple(
            block
            for block in self.blocks
            if (block.allocated is None or block.allocated <= event) and (block.freed is None or block.freed > event)
        )

    def reserved_at(self, event: int | None) -> int:
        if event is None:
            return sum(segment.total_size for segment in self.segments)
        return self.reserved_bytes[event]


def history_of(snapshot: Snapshot, device: int | None = None) -> History:
    """Of one device: the one that is asked for, else one that ran out, else the one with most memory reserved."""
    number = _device(snapshot, device)
    segments = tuple(segment for segment in snapshot.segments if segment.device == number)
    events = tuple(snapshot.device_traces[number]) if number < len(snapshot.device_traces) else ()
    at_end = {block.address: block for segment in segments for block in _active(segment)}
    first, reserved = _before(events, at_end, sum(segment.total_size for segment in segments))
    blocks, live_bytes, reserved_bytes = _replayed(events, first, reserved)
    last = tuple(block for block in blocks if block.freed is None) if events else tuple(at_end.values())
    return History(number, events, blocks, live_bytes, reserved_bytes, last, segments)


def _device(snapshot: Snapshot, device: int | None) -> int:
    reserved: dict[int, int] = {number: 0 for number, events in enumerate(snapshot.device_traces) if events}
    for segment in snapshot.segments:
        reserved[segment.device] = reserved.get(segment.device, 0) + segment.total_size
    if not reserved:
        raise AutockptError("the snapshot is empty: no device had any memory allocated when it was taken")
    if device is not None:
        if device not in reserved:
            known = ", ".join(map(str, sorted(reserved)))
            raise AutockptError(f"the snapshot has nothing of device {device}; it has devices {known}")
        return device
    failed = [n for n, events in enumerate(snapshot.device_traces) if any(e.action == "oom" for e in events)]
    return max(failed or reserved, key=lambda number: (reserved[number], -number))


def _active(segment: Segment) -> Iterator[LiveBlock]:
    address = segment.address
    for block in segment.blocks:
        start = address if block.address is None else block.address
        if block.state in _ACTIVE:
            yield LiveBlock(start, block.requested_size or block.size, block.frames)
        address = start + block.size


def _before(
    events: tuple[Event, ...], at_end: Mapping[int, LiveBlock], reserved_bytes: int
) -> tuple[dict[int, LiveBlock], int]:
    """The live blocks and the reserved bytes before the first event."""
    live = dict(at_end)
    for event in reversed(events):
        if event.action == "alloc":
            live.pop(event.addr, None)
        elif event.action == "free_completed":
            live[event.addr] = LiveBlock(event.addr, event.size)
        elif event.action in _GROWS:
            reserved_bytes -= event.size
        elif event.action in _SHRINKS:
            reserved_bytes += event.size
    return live, max(reserved_bytes, 0)


def _replayed(
    events: tuple[Event, ...], first: Mapping[int, LiveBlock], reserved_bytes: int
) -> tuple[tuple[LiveBlock, ...], tuple[int, ...], tuple[int, ...]]:
    live, done = dict(first), []
    live_bytes = sum(block.nbytes for block in live.values())
    totals, reserved = [], []
    for number, event in enumerate(events):
        if event.action == "alloc":
            live[event.addr] = LiveBlock(event.addr, event.size, event.frames, event.category, number)
            live_bytes += event.size
        elif event.action == "free_completed" and (block := live.pop(event.addr, None)) is not None:
            done.append(replace(block, freed=number, freed_by=event.frames))
            live_bytes -= block.nbytes
        elif event.action in _GROWS:
            reserved_bytes += event.size
        elif event.action in _SHRINKS:
            reserved_bytes -= event.size
        totals.append(live_bytes)
        reserved.append(reserved_bytes)
    everything = sorted([*done, *live.values()], key=lambda block: -1 if block.allocated is None else block.allocated)
    return tuple(everything), tuple(totals), tuple(reserved)
