"""What Inductor will fuse and what it will allocate: a pass of the graph as kernels that read and write bytes.

The rules follow torch 2.13's lowering. A pointwise value stays a formula inside its readers until something
makes it bytes: an output, a kernel that cannot fuse (matmul, convolution, attention), or too many readers of
too large a formula. Reductions own their result. Neighbouring loops over the same elements become one
kernel, and what is written and read only inside one kernel is never allocated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from autockpt.passes.indexed import EXTERN, PART, POINTWISE, VIEW, Indexed

# torch._inductor.config: realize_reads_threshold, and the CPU's and the GPU's realize_acc_reads and realize_opcount.
_READS_WHEN_SHARED = 4
_READS_AT_MOST = {True: 12, False: 8}
_OPERATIONS_AT_MOST = {True: 50, False: 30}


@dataclass(slots=True)
class Buffer:
    """One allocation: a storage made by one run of its operation."""

    owner: int
    nbytes: int
    is_pointwise: bool = False
    is_output: bool = False
    readers: list[int] = field(default_factory=list)
    """Operations of the pass, by position, that read it."""


@dataclass(slots=True)
class Kernel:
    operation: int
    """The value that it was first made for."""
    fusible: bool
    reads: set[int]
    writes: list[int]
    domain: tuple[int, int]
    scratch: int = 0
    parts: list[tuple[set[int], list[int]]] = field(default_factory=list)
    """Reads and writes of each loop that was fused into it."""
    launch: int = 0
    """Kernels of one launch share its beginning and its end: all writes before, all frees after."""


@dataclass(slots=True)
class Lowered:
    """A pass in order of execution. Buffers and kernels refer to each other by position."""

    kernels: list[Kernel]
    buffers: list[Buffer]
    started: int
    """The first so many buffers are there before the first kernel."""


@dataclass(slots=True)
class _Call:
    value: int
    reads: list[int]
    writes: list[int]


def lower(ix: Indexed, sequence: Sequence[int], given: Iterable[int], outputs: Iterable[int], fuse: bool) -> Lowered:
    """Kernels for these operations, run in this order, from the storages in `given`."""
    buffers, calls, started, last = _allocate(ix, sequence, given)
    for number in outputs:
        if (owner := ix.owner[number]) >= 0:
            buffers[last[owner]].is_output = True
    if fuse:
        kernels = _fuse(_materialise(ix, calls, buffers), buffers)
    else:
        kernels = [
            Kernel(c.value, False, set(c.reads), c.writes, ix.domain[c.value], ix.scratch[c.value]) for c in calls
        ]
    _launch(kernels, grouped=fuse and ix.on_cpu)
    return Lowered(kernels, buffers, started)


def _launch(kernels: list[Kernel], grouped: bool) -> None:
    """Inductor's C++ backend puts all loops between two kernels that cannot fuse into one function."""
    launch, before = -1, False
    for kernel in kernels:
        if not (grouped and before and kernel.fusible):
            launch += 1
        kernel.launch = launch
        before = kernel.fusible


def _allocate(
    ix: Indexed, sequence: Sequence[int], given: Iterable[int]
) -> tuple[list[Buffer], list[_Call], int, dict[int, int]]:
    """Every run of an operation makes new buffers; readers see the newest of each storage."""
    buffers = [Buffer(owner, ix.nbytes[owner]) for owner in given]
    current = {buffer.owner: number for number, buffer in enumerate(buffers)}
    started = len(buffers)
    calls: list[_Call] = []
    call_of: dict[int, _Call] = {}
    code, owner, reads = ix.code, ix.owner, ix.reads
    for number in sequence:
        kind = code[number]
        if kind == VIEW:
            continue
        if kind == PART:
            call = call_of[ix.parent[number]]
        else:
            call = call_of[number] = _Call(number, [current[read] for read in reads[number]], [])
            for read in call.reads:
                buffers[read].readers.append(len(calls))
            calls.append(call)
        if owner[number] == number:
            current[number] = len(buffers)
            call.writes.append(len(buffers))
            buffers.append(Buffer(number, ix.nbytes[number], kind == POINTWISE))
    return buffers, calls, started, current


def _materialise(ix: Indexed, calls: list[_Call], buffers: list[Buffer]) -> list[Kernel]:
    """Leave out pointwise values that stay formulas; their readers read what the formula reads."""
    formula: dict[int, tuple[set[int], int, bool]] = {}
    timed: list[tuple[int, int, Kernel]] = []
    code = ix.code
    most_reads, most_operations = _READS_AT_MOST[ix.on_cpu], _OPERATIONS_AT_MOST[ix.on_cpu]
    for position, call in enumerate(calls):
        reads: set[int] = set()
        size, heavy = 1, ix.heavy[call.value]
        for read in call.reads:
            inlined = formula.get(read)
            if inlined is None:
                reads.add(read)
            else:
                reads |= inlined[0]
                size += inlined[1]
                heavy = heavy or inlined[2]
        when = position
        if code[call.value] == POINTWISE and call.writes:
            buffer = buffers[call.writes[0]]
            externs = [reader for reader in buffer.readers if code[calls[reader].value] == EXTERN]
            shared = len(buffer.readers) > 1 and (heavy or size > most_operations or len(reads) > _READS_WHEN_SHARED)
            if not (buffer.is_output or shared or len(reads) > most_reads or externs):
                formula[call.writes[0]] = (reads, size, heavy)
                continue
            if externs and len(buffer.readers) == 1:
                when = externs[0]
        kernel = Kernel(
            call.value, code[call.value] != EXTERN, reads, call.writes, ix.domain[call.value], ix.scratch[call.value]
        )
        timed.append((when, position, kernel))
    timed.sort(key=lambda entry: entry[:2])
    return [kernel for _, _, kernel in timed]


def _fuse(kernels: list[Kernel], buffers: list[Buffer]) -> list[Kernel]:
    """Merge loops over the same elements, never across a kernel that cannot fuse: see `compiler/order.py`."""
    placed: list[Kernel] = []
    run: list[Kernel] = []
    for kernel in kernels:
        if not kernel.fusible:
            placed.append(kernel)
            run = []
            continue
        home = _home(kernel, run)
        if home is None:
            kernel.parts = [(set(kernel.reads), kernel.writes)]
            placed.append(kernel)
            run.append(kernel)
        else:
            home.parts.append((kernel.reads, kernel.writes))
            home.reads |= kernel.reads
            home.writes = home.writes + kernel.writes
            home.domain = _join(home.domain, kernel.domain)
    return _drop_internal(placed, buffers)


def _home(kernel: Kernel, run: list[Kernel]) -> Kernel | None:
    """The last loop of the run that this one can join: shared data, same elements, nothing needed in between."""
    for candidate in reversed(run):
        feeds = not kernel.reads.isdisjoint(candidate.writes)
        if (feeds or not kernel.reads.isdisjoint(candidate.reads)) and _same_loops(candidate.domain, kernel.domain):
            return candidate
        if feeds:
            return None
    return None


def _same_loops(one: tuple[int, int], other: tuple[int, int]) -> bool:
    if one == other:
        return True
    if one[1] > 1 and other[1] > 1:
        return False
    loop, reduction = (other, one) if one[1] > 1 else (one, other)
    return loop[0] in (reduction[0], reduction[0] * reduction[1])


def _join(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return max(one, other, key=lambda domain: (domain[1] > 1, domain[0]))


def _drop_internal(kernels: list[Kernel], buffers: list[Buffer]) -> list[Kernel]:
    """A pointwise buffer that only its own kernel reads is never allocated; a reduction's result always is."""
    outside: set[int] = set()
    for kernel in kernels:
        outside.update(kernel.reads.difference(kernel.writes))
    for kernel in kernels:
        inside = kernel.reads.intersection(kernel.writes)
        kernel.writes = [
            write
            for write in kernel.writes
            if write in outside or buffers[write].is_output or not buffers[write].is_pointwise
        ]
        kernel.reads -= inside
    return kernels
