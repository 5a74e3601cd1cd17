"""Run the kernels of one pass in the mind: which buffers live during each launch."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from autockpt.passes.forecast.calls import Buffer, Kernel
from autockpt.passes.forecast.fuse import FusedPass


@dataclass(frozen=True, slots=True)
class Replayed:
    live: list[int]
    """Bytes during each launch: what its kernels read, what they write, their scratch, all that waits."""
    last_read: dict[int, int]
    """The launch after which a buffer goes; absent for those that stay or die at birth."""
    made: dict[int, int]
    """The launch that makes a buffer."""
    reused: dict[int, int]
    """Buffers written in place, each over another that dies there."""


def replay(fused: FusedPass, weightless: Set[int], held: Set[int]) -> Replayed:
    """`weightless` storages are counted elsewhere; `held` ones outlive the pass and are never written over."""
    buffers = fused.buffers
    last_kernel = _last_reads(fused, held | weightless)
    made = {number: kernel.launch for kernel in fused.kernels for number in kernel.writes}
    last_read = {number: fused.kernels[position].launch for number, position in last_kernel.items()}
    dying: dict[int, list[int]] = {}
    for number, position in last_kernel.items():
        dying.setdefault(position, []).append(number)
    now = sum(b.nbytes for b in buffers[: fused.started] if b.owner not in weightless)
    live: list[int] = []
    reused: dict[int, int] = {}
    going = scratch = 0
    for position, kernel in enumerate(fused.kernels):
        if kernel.launch == len(live):
            now -= going
            going = scratch = 0
            live.append(now)
        free = dying.get(position, [])
        over = _written_over(kernel, free, fused) if kernel.fusible and free else {}
        reused.update(over)
        for number in kernel.writes:
            if number not in over:
                now += buffers[number].nbytes
            if number not in last_read and not buffers[number].is_output:
                going += buffers[number].nbytes
        overwritten = set(over.values())
        going += sum(buffers[number].nbytes for number in free if number not in overwritten)
        scratch = max(scratch, kernel.scratch)
        live[-1] = now + scratch
    return Replayed(live, last_read, made, reused)


def _written_over(kernel: Kernel, free: list[int], fused: FusedPass) -> dict[int, int]:
    """Which results take the place of an input: the same loop is the last to read it, in place, same size."""
    buffers = fused.buffers
    over: dict[int, int] = {}
    waiting = set(free) - kernel.bent
    for reads, writes in reversed(kernel.parts):
        last_here = waiting & reads
        waiting -= last_here
        for number in writes:
            fitting = [place for place in last_here if _fits(buffers[number], buffers[place])]
            if fitting and buffers[number].is_pointwise and number in kernel.writes:
                over[number] = min(fitting)
                last_here.discard(over[number])
    return over


def _fits(new: Buffer, old: Buffer) -> bool:
    return new.nbytes == old.nbytes and not (new.is_reshaped and old.is_channels_last)


def _last_reads(fused: FusedPass, staying: Set[int]) -> dict[int, int]:
    """The last kernel that reads each buffer, for those that go when they are read."""
    buffers = fused.buffers
    last: dict[int, int] = {}
    for position, kernel in enumerate(fused.kernels):
        for number in kernel.reads:
            last[number] = position
    return {
        number: position
        for number, position in last.items()
        if not buffers[number].is_output and buffers[number].owner not in staying
    }


def live_at(fused: FusedPass, replayed: Replayed, launch: int) -> Iterator[int]:
    """The buffers that live during one launch, each place in memory once."""
    gone = {over for number, over in replayed.reused.items() if replayed.made[number] < launch}
    for number, buffer in enumerate(fused.buffers):
        born = -1 if number < fused.started else replayed.made.get(number)
        if born is None or born > launch or number in gone:
            continue
        if born == launch and number in replayed.reused:
            continue
        dies = replayed.last_read.get(number, born if not buffer.is_output and born >= 0 else launch)
        if dies >= launch:
            yield number
