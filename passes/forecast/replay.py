"""Replay the kernels of one pass: the bytes that are live during each launch, and the lifetime of each buffer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from autockpt.passes.forecast.copies.engines import EngineRun
from autockpt.passes.forecast.fuse import FusedPass
from autockpt.passes.forecast.operations import Buffer, Kernel


@dataclass(frozen=True, slots=True)
class Replayed:
    """Buffers are positions in the pass's list."""

    live_bytes: list[int]
    """During each launch: buffers that its kernels read and write, their workspace, and all that waits."""
    written: dict[int, int]
    """The launch that writes a buffer."""
    last_read: dict[int, int]
    """The launch after which a buffer is freed; absent for outputs, for what outlives the pass, and without reads."""
    overwrites: dict[int, int]
    """Buffers written in place, each over another one that is freed there."""
    begins: Mapping[int, int] = field(default_factory=dict)
    """The launch at which an initial buffer is allocated, where it does not exist before: it is reloaded."""
    copied_bytes: int = 0
    """In the last of `live_bytes`: how much more is live after that launch, while autograd copies a gradient."""


@dataclass(frozen=True, slots=True)
class ReplayedPass:
    """The forward or the backward of a plan."""

    in_backward: bool
    fused: FusedPass
    replayed: Replayed
    held_bytes: int
    """Live during the whole pass besides its buffers: static bytes, and in the backward the forward's outputs."""
    margin: float
    engine: EngineRun | None = None
    """The copies of the pass; None without any."""

    @property
    def peak_bytes(self) -> int:
        return self.with_margin(max(self.replayed.live_bytes, default=0)) + self.held_bytes

    def live_bytes(self) -> list[int]:
        """Of everything, during each launch."""
        return [self.with_margin(live) + self.held_bytes for live in self.replayed.live_bytes]

    def with_margin(self, nbytes: int) -> int:
        return nbytes + int(nbytes * self.margin)


def replay(
    fused: FusedPass,
    uncounted: Set[int],
    held: Set[int],
    not_overwritten: Set[int] = frozenset(),
    copied_after: int = 0,
) -> Replayed:
    """`uncounted` storages are not in `live_bytes`. They and `held` ones outlive the pass and are never overwritten.

    `copied_after`: bytes that are allocated for a moment when the pass is over.
    """
    kernels, buffers = fused.kernels, fused.buffers
    last_kernel = _last_kernels(fused, held | uncounted)
    last_read = {number: kernels[position].launch for number, position in last_kernel.items()}
    freed_after: dict[int, list[int]] = {}
    for number, position in last_kernel.items():
        freed_after.setdefault(position, []).append(number)
    allocated = sum(buffer.nbytes for buffer in buffers[: fused.initial_buffers] if buffer.storage not in uncounted)
    live_bytes: list[int] = []
    overwrites: dict[int, int] = {}
    freed_by_launch = workspace = 0
    for position, kernel in enumerate(kernels):
        if kernel.launch == len(live_bytes):
            allocated -= freed_by_launch
            freed_by_launch = workspace = 0
            live_bytes.append(allocated)
        freed = freed_after.get(position, [])
        reusable = [number for number in freed if buffers[number].storage not in not_overwritten]
        in_place = _written_in_place(kernel, reusable, buffers) if kernel.is_loop and reusable else {}
        if kernel.is_wait and reusable:
            in_place = dict(zip(kernel.writes, reusable, strict=True))
        overwrites.update(in_place)
        for number in kernel.writes:
            if number not in in_place:
                allocated += buffers[number].nbytes
            if number not in last_read and not buffers[number].is_output:
                freed_by_launch += buffers[number].nbytes
        overwritten = set(in_place.values())
        freed_by_launch += sum(buffers[number].nbytes for number in freed if number not in overwritten)
        workspace = max(workspace, kernel.workspace_bytes)
        live_bytes[-1] = allocated + workspace
    copied = 0
    if live_bytes and copied_after:
        copied = max(allocated - freed_by_launch + copied_after - live_bytes[-1], 0)
        live_bytes[-1] += copied
    written = {number: kernel.launch for kernel in kernels for number in kernel.writes}
    return Replayed(live_bytes, written, last_read, overwrites, copied_bytes=copied)


def _last_kernels(fused: FusedPass, outliving: Set[int]) -> dict[int, int]:
    """The last kernel that reads each buffer, for buffers that are freed after it."""
    last: dict[int, int] = {}
    for position, kernel in enumerate(fused.kernels):
        for number in kernel.reads:
            last[number] = position
    buffers = fused.buffers
    return {
        number: position
        for number, position in last.items()
        if not buffers[number].is_output and buffers[number].storage not in outliving
    }


def _written_in_place(kernel: Kernel, freed: list[int], buffers: list[Buffer]) -> dict[int, int]:
    """Results that take the memory of an input: the same loop is the last to read it, element to element, same size."""
    in_place: dict[int, int] = {}
    reusable = set(freed) - kernel.mapped_reads
    for reads, writes in reversed(kernel.fused_loops):
        last_read_here = reusable & reads
        reusable -= last_read_here
        for number in writes:
            fitting = [old for old in last_read_here if _fits(buffers[number], buffers[old])]
            if fitting and buffers[number].is_pointwise and number in kernel.writes:
                in_place[number] = min(fitting)
                last_read_here.discard(in_place[number])
    return in_place


def _fits(new: Buffer, old: Buffer) -> bool:
    return new.nbytes == old.nbytes and not (new.is_reshaped and old.is_channels_last)


def lifetimes(fused: FusedPass, replayed: Replayed) -> Iterator[tuple[int, int, int]]:
    """Buffer, first and last launch of its life, -1 for the first of an initial buffer; each byte of memory once.

    Where one buffer is written over another, the old one counts during that launch and the new one after it: an output
    that the last launch of a pass writes so begins after its last launch.
    """
    end = len(replayed.live_bytes) - 1
    overwritten_at = {old: replayed.written[new] for new, old in replayed.overwrites.items()}
    for number, buffer in enumerate(fused.buffers):
        is_initial = number < fused.initial_buffers
        written = replayed.begins.get(number, -1) if is_initial else replayed.written.get(number)
        if written is None:
            continue
        unread_last = end if is_initial or buffer.is_output else written
        last = overwritten_at.get(number, replayed.last_read.get(number, unread_last))
        first = written + 1 if number in replayed.overwrites else written
        if first <= last or buffer.is_output:
            yield number, first, last


def live_at(fused: FusedPass, replayed: Replayed, launch: int) -> Iterator[int]:
    """The buffers that live during one launch."""
    return (number for number, first, last in lifetimes(fused, replayed) if first <= launch <= last)
