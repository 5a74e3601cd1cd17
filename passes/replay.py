"""Run the kernels of one pass in the mind: which buffers live while each kernel runs."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from autockpt.passes.kernels import Lowered


@dataclass(frozen=True, slots=True)
class Replayed:
    live: list[int]
    """Bytes while each kernel runs: what it reads, what it writes, its scratch, all that waits."""
    after: int
    """Bytes when the pass is over."""
    last_read: dict[int, int]
    """The kernel after which a buffer goes; absent for those that stay or die at birth."""
    reused: dict[int, int]
    """Buffers written in place, each over another that dies there."""


def replay(lowered: Lowered, weightless: Set[int], held: Set[int]) -> Replayed:
    """`weightless` storages are counted elsewhere; `held` ones outlive the pass and are never written over."""
    buffers = lowered.buffers
    last_read = _last_reads(lowered, held | weightless)
    dying: dict[int, list[int]] = {}
    for number, position in last_read.items():
        dying.setdefault(position, []).append(number)
    now = sum(b.nbytes for b in buffers[: lowered.started] if b.owner not in weightless)
    live: list[int] = []
    reused: dict[int, int] = {}
    for position, kernel in enumerate(lowered.kernels):
        free = dying.get(position, [])
        fresh = 0
        if kernel.fusible and free and kernel.writes:
            over = {buffers[number].nbytes: number for number in free}
            for number in kernel.writes:
                target = over.pop(buffers[number].nbytes, None)
                if target is None:
                    fresh += buffers[number].nbytes
                else:
                    reused[number] = target
            now += fresh
            live.append(now + kernel.scratch)
            now -= sum(buffers[number].nbytes for number in free)
            now += sum(buffers[number].nbytes for number in reused if number in kernel.writes)
        else:
            now += sum(buffers[number].nbytes for number in kernel.writes)
            live.append(now + kernel.scratch)
            now -= sum(buffers[number].nbytes for number in free)
        now -= sum(
            buffers[number].nbytes
            for number in kernel.writes
            if number not in last_read and not buffers[number].is_output
        )
    return Replayed(live, now, last_read, reused)


def _last_reads(lowered: Lowered, staying: Set[int]) -> dict[int, int]:
    buffers = lowered.buffers
    last: dict[int, int] = {}
    for position, kernel in enumerate(lowered.kernels):
        for number in kernel.reads:
            last[number] = position
    return {
        number: position
        for number, position in last.items()
        if not buffers[number].is_output and buffers[number].owner not in staying
    }


def live_at(lowered: Lowered, replayed: Replayed, position: int) -> Iterator[int]:
    """The buffers that live while one kernel runs."""
    kernel = lowered.kernels[position]
    made = {number: at for at, k in enumerate(lowered.kernels[: position + 1]) for number in k.writes}
    for number in (*range(lowered.started), *made):
        if replayed.last_read.get(number, position) < position:
            continue
        if made.get(number) == position and number in replayed.reused:
            continue
        read_later = number in replayed.last_read or lowered.buffers[number].is_output
        if number < lowered.started or read_later or number in kernel.writes:
            yield number
