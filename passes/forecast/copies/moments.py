"""Where a plan's saved values are written and read, in launches, and where a copy of one may start or be waited for.

Copies are placed beside library calls only. Inductor runs these in the order of the plan; where it runs a loop depends
on what the loop is fused with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from autockpt.passes.forecast.facts import GraphFacts
from autockpt.passes.forecast.fuse import FusedPass
from autockpt.passes.forecast.replay import ReplayedPass


@dataclass(frozen=True, slots=True)
class Crossing:
    """A saved value. Buffers are positions in the lists of their passes."""

    name: str
    nbytes: int
    forward_buffer: int
    written: int
    """The launch of the forward that computes it."""
    last_read: int
    """The last launch of the forward that reads it, or `written`."""
    backward_buffer: int
    first_read: int
    """The first launch of the backward that reads it."""


class Anchor(NamedTuple):
    """A library call beside which a copy may be placed."""

    launch: int
    position: int
    """In the sequence of values that the pass runs."""


def find_crossings(
    facts: GraphFacts, forward: ReplayedPass, backward: ReplayedPass, names: Iterable[str]
) -> dict[str, Crossing]:
    """Of those among these saved values that both passes touch."""
    written = {
        forward.fused.buffers[n].storage: n for n in forward.replayed.written if forward.fused.buffers[n].is_output
    }
    initial = {buffer.storage: n for n, buffer in enumerate(backward.fused.buffers[: backward.fused.initial_buffers])}
    last_read, first_read = _last_reads(forward.fused), _first_reads(backward.fused)
    found = {}
    for name in names:
        storage = facts.position[name]
        if storage not in written or storage not in initial or initial[storage] not in first_read:
            continue
        buffer, launch = written[storage], forward.replayed.written[written[storage]]
        found[name] = Crossing(
            name=name,
            nbytes=facts.values[storage].nbytes,
            forward_buffer=buffer,
            written=launch,
            last_read=max(last_read.get(buffer, launch), launch),
            backward_buffer=initial[storage],
            first_read=first_read[initial[storage]],
        )
    return found


def _last_reads(fused: FusedPass) -> dict[int, int]:
    return {number: kernel.launch for kernel in fused.kernels for number in kernel.reads}


def _first_reads(fused: FusedPass) -> dict[int, int]:
    return {number: kernel.launch for kernel in reversed(fused.kernels) for number in kernel.reads}


def find_anchors(fused: FusedPass, sequence: Sequence[int]) -> list[Anchor]:
    """The library calls of a pass that runs these values, in order; each run of a value is found by its turn."""
    launches: dict[int, list[int]] = {}
    for kernel in fused.kernels:
        if not kernel.is_loop:
            launches.setdefault(kernel.operation, []).append(kernel.launch)
    turns: dict[int, int] = {}
    found = []
    for position, value in enumerate(sequence):
        turn = turns[value] = turns.get(value, -1) + 1
        if turn < len(launches.get(value, ())):
            found.append(Anchor(launches[value][turn], position))
    return found
