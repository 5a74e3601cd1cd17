"""A pass of the graph as calls that read and write buffers, before anything is fused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from autockpt.passes.forecast.arrays import EXTERN, PART, POINTWISE, VIEW, GraphArrays, Path


@dataclass(slots=True)
class Buffer:
    """One allocation: a storage made by one run of its operation."""

    owner: int
    nbytes: int
    is_pointwise: bool = False
    is_channels_last: bool = False
    is_reshaped: bool = False
    is_output: bool = False
    readers: list[int] = field(default_factory=list)
    """Calls of the pass, by position, that read it."""


@dataclass(slots=True)
class Kernel:
    operation: int
    """The value that it was first made for."""
    fusible: bool
    reads: set[int]
    bent: set[int]
    """Those of the reads whose elements it takes from other places."""
    writes: list[int]
    domain: tuple[int, int]
    operations: set[tuple[int, Path]]
    """What is computed in it, each once for every way that leads to its elements."""
    scratch: int = 0
    parts: list[tuple[set[int], list[int]]] = field(default_factory=list)
    """Reads and writes of each loop that was fused into it."""
    launch: int = 0
    """Kernels of one launch share its beginning and its end: all writes before, all frees after."""


@dataclass(slots=True)
class Operation:
    value: int
    code: int
    reads: list[tuple[int, Path]]
    writes: list[int]
    absorbed: int = -1
    """The matmul that was merged into it."""


def allocate(
    ix: GraphArrays, sequence: Sequence[int], given: Iterable[int], outputs: Iterable[int]
) -> tuple[list[Buffer], list[Operation], int]:
    """Every run of an operation makes new buffers; readers see the newest of each storage."""
    buffers = [_buffer(ix, owner) for owner in given]
    current = {buffer.owner: number for number, buffer in enumerate(buffers)}
    started = len(buffers)
    calls: list[Operation] = []
    call_of: dict[int, Operation] = {}
    code, owner, reads = ix.code, ix.owner, ix.reads
    for number in sequence:
        kind = code[number]
        if kind == VIEW:
            continue
        if kind == PART:
            call = call_of[ix.parent[number]]
        else:
            call = call_of[number] = Operation(
                number, kind, [(current[read], path) for read, path in reads[number]], []
            )
            for read, _ in call.reads:
                buffers[read].readers.append(len(calls))
            calls.append(call)
        if owner[number] == number:
            current[number] = len(buffers)
            call.writes.append(len(buffers))
            buffers.append(_buffer(ix, number))
    for number in outputs:
        if (base := owner[number]) >= 0:
            buffers[current[base]].is_output = True
    return buffers, calls, started


def _buffer(ix: GraphArrays, owner: int) -> Buffer:
    return Buffer(owner, ix.nbytes[owner], ix.code[owner] == POINTWISE, ix.channels_last[owner], ix.reshaped[owner])


def absorb(ix: GraphArrays, calls: list[Operation], buffers: list[Buffer]) -> None:
    """Merge a matmul into the sum that is all that reads it: it then runs where the sum runs, and holds its inputs."""
    sums = [position for position, call in enumerate(calls) if ix.absorbs[call.value]]
    maker = {write: position for position, call in enumerate(calls) for write in call.writes} if sums else {}
    for position in sums:
        call = calls[position]
        for read, _ in call.reads:
            if buffers[read].owner not in ix.absorbs[call.value] or read not in maker:
                continue
            if len(buffers[read].readers) > 1 or buffers[read].is_output:
                continue
            matmul = calls[maker[read]]
            call.reads = [way for way in call.reads if way[0] != read] + matmul.reads
            call.code, call.absorbed, matmul.code, matmul.writes = EXTERN, matmul.value, VIEW, []
            for source, _ in matmul.reads:
                buffers[source].readers = [position if r == maker[read] else r for r in buffers[source].readers]
            break
