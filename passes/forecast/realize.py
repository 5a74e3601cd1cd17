"""Which values become bytes: a pass of the graph as loops and kernels, formulas inlined as Inductor inlines them.

The rules follow torch 2.13's lowering. A pointwise value stays a formula inside its readers until something makes it
bytes: an output, a kernel that cannot fuse (matmul, convolution, attention), or too many readers of too large a
formula. An element that is read in two places counts as two reads. Reductions own their result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from autockpt.passes.forecast.arrays import EXTERN, POINTWISE, VIEW, GraphArrays, Path
from autockpt.passes.forecast.calls import Buffer, Kernel, Operation

# torch._inductor.config: realize_reads_threshold; the CPU's and the GPU's realize_acc_reads and realize_opcount; and
# the size from which graph.py realizes whatever it is.
_READS_WHEN_SHARED = 4
_READS_AT_MOST = {True: 12, False: 8}
_OPERATIONS_AT_MOST = {True: 50, False: 30}
_OPERATIONS_EVER = 100


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


def realize(ix: GraphArrays, sequence: Sequence[int], calls: list[Operation], buffers: list[Buffer]) -> list[Kernel]:
    """Leave out pointwise values that stay formulas; their readers read what the formula reads."""
    present = set(sequence).difference(call.value for call in calls if call.code == VIEW)
    # Inductor lays out a pass for convolutions if it has one; a backward that recomputes none has not.
    twice = ix.on_cpu and not any(ix.convolution[value] for value in present)
    formulas: dict[int, tuple[Operation, _Formula]] = {}
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


def _write_down(ix: GraphArrays, call: Operation, formulas: dict[int, tuple[Operation, _Formula]]) -> Iterator[Kernel]:
    """What a kernel that cannot fuse reads becomes bytes before it runs."""
    for read, _ in call.reads:
        if read in formulas:
            yield _kernel(ix, *formulas.pop(read))


def _lay_out(ix: GraphArrays, call: Operation, buffers: list[Buffer]) -> Iterator[Kernel]:
    """Copy what a convolution's backward wants channels-last and indexing has just written otherwise."""
    for position, (read, path) in enumerate(call.reads):
        if ix.gathered[buffers[read].owner]:
            copy = Buffer(buffers[read].owner, buffers[read].nbytes)
            call.reads[position] = len(buffers), path
            yield Kernel(call.value, True, {read}, {read}, [len(buffers)], ix.domain[buffers[read].owner], set())
            buffers.append(copy)


def _stays(ix: GraphArrays, formula: _Formula, buffer: Buffer, present: set[int]) -> bool:
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


def _pieces(ix: GraphArrays, position: int, calls: list[Operation], buffers: list[Buffer]) -> dict[int, int]:
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


def _inline(ix: GraphArrays, call: Operation, formulas: dict[int, tuple[Operation, _Formula]]) -> _Formula:
    reads: set[tuple[int, Path]] = set()
    operations: set[tuple[int, Path]] = {(call.value, ())}
    if call.absorbed >= 0:
        operations.add((call.absorbed, ()))
    heavy = ix.heavy[call.value]
    for way in call.reads:
        known = formulas.get(way[0])
        if known is None:
            reads.add(way)
        else:
            inlined = known[1].through(way[1]) if way[1] else known[1]
            reads |= inlined.reads
            operations |= inlined.operations
            heavy = heavy or inlined.heavy
    return _Formula(reads, operations, heavy)


def _is_too_much(formula: _Formula, readers: int, on_cpu: bool) -> bool:
    large = formula.size > _OPERATIONS_AT_MOST[on_cpu]
    if readers > 1 and (large or (on_cpu and formula.heavy) or len(formula.reads) > _READS_WHEN_SHARED):
        return True
    if formula.size > _OPERATIONS_EVER:
        return True
    return len(formula.reads) > 1 and (large or len(formula.reads) > _READS_AT_MOST[on_cpu])


def _kernel(ix: GraphArrays, call: Operation, formula: _Formula) -> Kernel:
    return Kernel(
        operation=call.value,
        fusible=call.code != EXTERN,
        reads={read for read, _ in formula.reads},
        bent={read for read, path in formula.reads if path},
        writes=call.writes,
        domain=ix.domain[call.value],
        operations=formula.operations,
        scratch=ix.scratch[call.value],
    )
