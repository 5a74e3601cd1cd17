"""What filled a device at the moment that matters: when an allocation failed, else when most bytes were live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from autockpt.diagnose.frames import Place
from autockpt.diagnose.history import History, LiveBlock, history_of
from autockpt.diagnose.kinds import BlockKind, RecordedAllocation
from autockpt.diagnose.snapshot_file import Segment, Snapshot
from autockpt.units import format_size

SCHEMA = 1
_MOST_POINTS = 400
"""Of the curve of live bytes."""


@dataclass(frozen=True)
class Group:
    """Live blocks of one kind that one line allocated."""

    kind: BlockKind
    place: Place
    nbytes: int
    blocks: int


@dataclass(frozen=True)
class Diagnosis:
    device: int
    failed_bytes: int | None
    """Of the allocation that failed; None where none did."""
    failed_at: Place
    device_free_bytes: int | None
    """What the device had free when the allocation failed."""
    live_bytes: int
    reserved_bytes: int
    """By the caching allocator of this process."""
    largest_free_bytes: int
    """The largest gap between live blocks, in the segments of the snapshot; an allocation has to fit into one."""
    by_kind: Mapping[BlockKind, int]
    groups: tuple[Group, ...]
    """The largest first."""
    curve: tuple[int, ...]
    """Live bytes over the trace, at most some hundred points, each the largest of its part."""
    recorded: bool
    """Whether the snapshot has a trace; without one it shows the moment at which it was taken."""

    @property
    def ran_out(self) -> bool:
        return self.failed_bytes is not None

    @property
    def unused_bytes(self) -> int:
        """Reserved but free: rounding and fragmentation."""
        return max(self.reserved_bytes - self.live_bytes, 0)

    @property
    def capacity_bytes(self) -> int | None:
        """What this process can have of the device; known where an allocation failed."""
        return None if self.device_free_bytes is None else self.reserved_bytes + self.device_free_bytes

    @property
    def verdict(self) -> str:
        live, reserved = format_size(self.live_bytes), format_size(self.reserved_bytes)
        if self.failed_bytes is None:
            when = "at the peak of the recording" if self.recorded else "when the snapshot was taken"
            return f"It did not run out: {live} in use {when}, {reserved} reserved."
        free = "" if self.device_free_bytes is None else f", {format_size(self.device_free_bytes)} free on the device"
        return f"It ran out: {format_size(self.failed_bytes)} asked for{free}; {live} in use, {reserved} reserved."

    def as_json(self) -> dict[str, Any]:
        """Bytes are whole numbers."""
        return {
            "schema": SCHEMA,
            "kind": "autockpt diagnosis",
            "verdict": self.verdict,
            "ran_out": self.ran_out,
            "device": self.device,
            "failed_bytes": self.failed_bytes,
            "failed_at": asdict(self.failed_at),
            "device_free_bytes": self.device_free_bytes,
            "capacity_bytes": self.capacity_bytes,
            "live_bytes": self.live_bytes,
            "reserved_bytes": self.reserved_bytes,
            "unused_bytes": self.unused_bytes,
            "largest_free_bytes": self.largest_free_bytes,
            "by_kind": {kind.value: nbytes for kind, nbytes in self.by_kind.items()},
            "groups": [
                {"kind": group.kind.value, "bytes": group.nbytes, "blocks": group.blocks, **asdict(group.place)}
                for group in self.groups
            ],
            "curve": list(self.curve),
        }


def diagnose_snapshot(snapshot: Snapshot, device: int | None = None) -> Diagnosis:
    history = history_of(snapshot, device)
    moment = history.failed if history.failed is not None else history.peak
    failure = history.events[history.failed] if history.failed is not None else None
    blocks = history.live_at(moment)
    allocations = [RecordedAllocation(block, history.failed) for block in blocks]
    return Diagnosis(
        device=history.device,
        failed_bytes=failure.size if failure else None,
        failed_at=RecordedAllocation(LiveBlock(0, 0, failure.frames)).place if failure else Place(),
        device_free_bytes=failure.device_free if failure else None,
        live_bytes=sum(block.nbytes for block in blocks),
        reserved_bytes=history.reserved_at(moment),
        largest_free_bytes=_largest_gap(history.segments, blocks),
        by_kind=_by_kind(allocations),
        groups=_groups(allocations),
        curve=_curve(history),
        recorded=bool(history.events),
    )


def _by_kind(allocations: Sequence[RecordedAllocation]) -> dict[BlockKind, int]:
    """The largest first; kinds without bytes are left out."""
    totals: dict[BlockKind, int] = {}
    for allocation in allocations:
        totals[allocation.kind] = totals.get(allocation.kind, 0) + allocation.block.nbytes
    return dict(sorted(totals.items(), key=lambda entry: -entry[1]))


def _groups(allocations: Sequence[RecordedAllocation]) -> tuple[Group, ...]:
    found: dict[tuple[BlockKind, Place], list[int]] = {}
    for allocation in allocations:
        found.setdefault((allocation.kind, allocation.place), []).append(allocation.block.nbytes)
    groups = [Group(kind, place, sum(sizes), len(sizes)) for (kind, place), sizes in found.items()]
    return tuple(sorted(groups, key=lambda group: (-group.nbytes, str(group.place))))


def _largest_gap(segments: Sequence[Segment], blocks: Sequence[LiveBlock]) -> int:
    """Segments are those at the end of the trace: torch frees few of them unless it has to."""
    ordered = sorted(blocks, key=lambda block: block.address)
    largest = 0
    for segment in segments:
        end = segment.address + segment.total_size
        inside = [(b.address, b.address + b.nbytes) for b in ordered if segment.address <= b.address < end]
        bounds = [(segment.address, segment.address), *inside, (end, end)]
        largest = max(largest, *(start - last for (_, last), (start, _) in pairwise(bounds)))
    return largest


def _curve(history: History) -> tuple[int, ...]:
    width = -(-len(history.live_bytes) // _MOST_POINTS) or 1
    return tuple(max(history.live_bytes[n : n + width]) for n in range(0, len(history.live_bytes), width))
