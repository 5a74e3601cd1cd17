"""Which values become bytes: a pass of the graph as loops and kernels, formulas inlined as Inductor inlines them.

The rules follow torch 2.13's lowering. A pointwise value stays a formula inside its readers until something makes it
bytes: an output, a kernel that cannot fuse (matmul, convolution, attention), or too many readers of too large a
formula. An element that is read in two places counts as two reads. Reductions own their result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from autockpt.passes.indexed import EXTERN, PART, POINTWISE, VIEW, Indexed, Path

# torch._inductor.config: realize_reads_threshold; the CPU's and the GPU's realize_acc_reads and realize_opcount; and
# the size from which graph.py realizes whatever it is.
_READS_WHEN_SHARED = 4
_READS_AT_MOST = {True: 12, False: 8}
_OPERATIONS_AT_MOST = {True: 50, False: 30}
_OPERATIONS_EVER = 100


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
    scratch: int = 0
    parts: list[tuple[set[int], list[int]]] = field(default_factory=list)
    """Reads and writes of each loop that was fused into it."""
    launch: int = 0
    """Kernels of one launch share its beginning and its end: all writes before, all frees after."""


@dataclass(slots=True)
class Call:
    value: int
    code: int
    reads: list[tuple[int, Path]]
    writes: list[int]


@dataclass(slots=True)
class _Formula:
    """What a reader computes in place of a load. Parts that are equal are computed once."""

    reads: set[tuple[int, Path]]
    operations: set[tuple[int, Path]]
    heavy: bool

    @property
    def size(self) -> int:
        return len(self.reads) + len(self.operations)

    def through(self, path: Path) -> _Formula:
        if not path:
            return self
        return _Formula(
            {(buffer, way + path) for buffer, way in self.reads},
            {(value, way + path) for value, way in self.operations},
            self.heavy,
        )


def allocate(
    ix: Indexed, sequence: Sequence[int], given: Iterable[int], outputs: Iterable[int]
) -> tuple[list[Buffer], list[Call], int]:
    """Every run of an operation makes new buffers; readers see the newest of each storage."""
    buffers = [_buffer(ix, owner) for owner in given]
    current = {buffer.owner: number for number, buffer in enumerate(buffers)}
    started = len(buffers)
    calls: list[Call] = []
    call_of: dict[int, Call] = {}
    code, owner, reads = ix.code, ix.owner, ix.reads
    for number in sequence:
        kind = code[number]
        if kind == VIEW:
            continue
        if kind == PART:
            call = call_of[ix.parent[number]]
        else:
            call = call_of[number] = Call(number, kind, [(current[read], path) for read, path in reads[number]], [])
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


def _buffer(ix: Indexed, owner: int) -> Buffer:
    return Buffer(
        owner,
        ix.nbytes[owner],
        is_pointwise=ix.code[owner] == POINTWISE,
        is_channels_last=ix.channels_last[owner],
        is_reshaped=ix.reshaped[owner],
    )


def absorb(ix: Indexed, calls: list[Call], buffers: list[Buffer]) -> None:
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
            call.code, matmul.code, matmul.writes = EXTERN, VIEW, []
            for source, _ in matmul.reads:
                buffers[source].readers = [position if r == maker[read] else r for r in buffers[source].readers]
            break


def materialise(ix: Indexed, sequence: Sequence[int], calls: list[Call], buffers: list[Buffer]) -> list[Kernel]:
    """Leave out pointwise values that stay formulas; their readers read what the formula reads."""
    present = set(sequence).difference(call.value for call in calls if call.code == VIEW)
    # Inductor lays out a pass for convolutions if it has one; a backward that recomputes none has not.
    twice = ix.on_cpu and not any(ix.convolution[value] for value in present)
    formulas: dict[int, tuple[Call, _Formula]] = {}
    inside: dict[int, int] = {}
    kernels: list[Kernel] = []
    for position, call in enumerate(calls):
        if call.code == VIEW:
            continue
        if call.code == EXTERN:
            kernels.extend(_write_down(ix, call, formulas))
            if twice:
                kernels.extend(_lay_out(ix, call, buffers))
        formula = _inline(ix, call, formulas)
        if ix.concatenates[call.value]:
            inside = _pieces(ix, position, calls, buffers) | inside
            for piece in inside:
                formulas.pop(piece, None)
        if call.code == POINTWISE and call.writes and _stays(ix, formula, buffers[call.writes[0]], present):
            formulas[call.writes[0]] = call, formula
        else:
            kernels.append(_kernel(ix, call, formula))
    return _write_inside(kernels, inside) if inside else kernels


def _write_down(ix: Indexed, call: Call, formulas: dict[int, tuple[Call, _Formula]]) -> Iterator[Kernel]:
    """What a kernel that cannot fuse reads becomes bytes before it runs."""
    for read, _ in call.reads:
        if read in formulas:
            yield _kernel(ix, *formulas.pop(read))


def _lay_out(ix: Indexed, call: Call, buffers: list[Buffer]) -> Iterator[Kernel]:
    """Copy what a convolution's backward wants channels-last and indexing has just written otherwise."""
    for position, (read, path) in enumerate(call.reads):
        if ix.gathered[buffers[read].owner]:
            copy = Buffer(buffers[read].owner, buffers[read].nbytes)
            call.reads[position] = len(buffers), path
            yield Kernel(call.value, True, {read}, {read}, [len(buffers)], ix.domain[buffers[read].owner])
            buffers.append(copy)


def _stays(ix: Indexed, formula: _Formula, buffer: Buffer, present: set[int]) -> bool:
    """Whether a value is a formula still after it was computed: not an output, and not too much for its readers."""
    if buffer.is_output or ix.written[buffer.owner] or _is_too_much(formula, len(buffer.readers), ix.on_cpu):
        return False
    if len(buffer.readers) < 2 or len(formula.reads) < 2:
        return True
    for node in (buffer.owner, *ix.views[buffer.owner]):
        users = [user for user in ix.users[node] if user in present]
        if len(users) > 1 and any(ix.hints[user] for user in users):
            return False
    return True


def _pieces(ix: Indexed, position: int, calls: list[Call], buffers: list[Buffer]) -> dict[int, int]:
    """The parts of a concatenation that are written straight into it, and that live there from then on."""
    call = calls[position]
    found = {}
    for read, path in call.reads:
        buffer = buffers[read]
        movable = ix.movable[buffer.owner] and buffer.owner in ix.direct[call.value] and not path
        # What a matmul has read before is laid out for it, and is copied.
        fixed = buffer.is_output or any(calls[r].code == EXTERN for r in buffer.readers if r < position)
        if movable and not fixed:
            found[read] = call.writes[0]
    return found


def _write_inside(kernels: list[Kernel], inside: dict[int, int]) -> list[Kernel]:
    """The whole is allocated with its first part, and lives until nobody reads any part."""
    made: set[int] = set()
    for kernel in kernels:
        kernel.reads = {inside.get(read, read) for read in kernel.reads}
        writes = dict.fromkeys(inside.get(write, write) for write in kernel.writes)
        kernel.writes = [write for write in writes if write not in made]
        made.update(kernel.writes)
    return kernels


def _inline(ix: Indexed, call: Call, formulas: dict[int, tuple[Call, _Formula]]) -> _Formula:
    found = _Formula(set(), {(call.value, ())}, ix.heavy[call.value])
    for read, path in call.reads:
        if read not in formulas:
            found.reads.add((read, path))
        else:
            inlined = formulas[read][1].through(path)
            found.reads |= inlined.reads
            found.operations |= inlined.operations
            found.heavy = found.heavy or inlined.heavy
    return found


def _is_too_much(formula: _Formula, readers: int, on_cpu: bool) -> bool:
    large = formula.size > _OPERATIONS_AT_MOST[on_cpu]
    if readers > 1 and (large or (on_cpu and formula.heavy) or len(formula.reads) > _READS_WHEN_SHARED):
        return True
    if formula.size > _OPERATIONS_EVER:
        return True
    return len(formula.reads) > 1 and (large or len(formula.reads) > _READS_AT_MOST[on_cpu])


def _kernel(ix: Indexed, call: Call, formula: _Formula) -> Kernel:
    return Kernel(
        operation=call.value,
        fusible=call.code != EXTERN,
        reads={read for read, _ in formula.reads},
        bent={read for read, path in formula.reads if path},
        writes=call.writes,
        domain=ix.domain[call.value],
        scratch=ix.scratch[call.value],
    )
