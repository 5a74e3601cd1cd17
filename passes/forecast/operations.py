"""A pass of the graph as operations that read and write buffers, before anything is fused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from autockpt.passes.forecast.facts import EXTERN, PART, POINTWISE, VIEW, GraphFacts, IndexMap, LoopSizes, Read
from autockpt.passes.graph import Kind


@dataclass(slots=True)
class Buffer:
    """One allocation: a storage, written by one run of its operation."""

    storage: int
    nbytes: int
    is_pointwise: bool = False
    is_channels_last: bool = False
    is_reshaped: bool = False
    is_output: bool = False
    readers: list[int] = field(default_factory=list)
    """Positions of the operations that read it."""


@dataclass(slots=True)
class Operation:
    """One run of a value's operator. Reads and writes are positions of buffers."""

    value: int
    kind: Kind
    """VIEW runs no kernel: views with several users, and what was merged into another operation."""
    reads: list[Read]
    writes: list[int]
    users: list[int] = field(default_factory=list)
    """Values that are computed from this run, if several can be; a view counts as one, whatever is computed from it."""
    merged_matmul: int = -1
    """The value of the matmul that was merged into it."""


@dataclass(slots=True)
class Kernel:
    """One loop nest or one library call. Reads and writes are positions of buffers."""

    operation: int
    """The value that it was first made for."""
    is_loop: bool
    """A loop nest can be fused with others; a library call (EXTERN) cannot."""
    reads: set[int]
    mapped_reads: set[int]
    """Those of the reads that go through an index map."""
    writes: list[int]
    loop_sizes: LoopSizes
    computed: set[tuple[int, IndexMap]]
    """Values that it computes, once for each distinct index map."""
    workspace_bytes: int = 0
    is_wait: bool = False
    """It writes over what it reads."""
    fused_loops: list[tuple[set[int], list[int]]] = field(default_factory=list)
    """Reads and writes of each loop that was fused into it."""
    launch: int = 0
    """Kernels of one launch allocate all they write at its start and free all they can at its end."""


def list_operations(
    facts: GraphFacts, sequence: Sequence[int], initial: Collection[int], outputs: Iterable[int]
) -> tuple[list[Operation], list[Buffer]]:
    """The operations of these values, run in this order. Buffers of the `initial` storages come first.

    Each run writes new buffers; a read takes the newest buffer of its storage.
    """
    buffers = [_buffer(facts, storage) for storage in initial]
    newest = {buffer.storage: number for number, buffer in enumerate(buffers)}
    operations: list[Operation] = []
    of_value: dict[int, Operation] = {}
    users_of: dict[int, list[int]] = {}
    """Of the newest run of each pointwise value, and of its views: users decide whether Inductor realizes it."""
    values, initial_buffers = facts.values, len(initial)
    for number in sequence:
        value = values[number]
        kind = value.kind
        for source in value.shared_inputs:
            if source in users_of:
                users_of[source].append(number)
        if kind is VIEW:
            buffer = newest.get(value.storage, -1)
            if value.is_shared and buffer >= initial_buffers and buffers[buffer].is_pointwise:
                view = Operation(number, VIEW, [(buffer, ())], [])
                users_of[number] = view.users
                operations.append(view)
            continue
        if kind is PART:
            operation = of_value[value.parent]
        else:
            reads = [(newest[storage], index_map) for storage, index_map in value.reads]
            operation = of_value[number] = Operation(number, kind, reads, [])
            for read, _ in reads:
                buffers[read].readers.append(len(operations))
            operations.append(operation)
            if kind is POINTWISE and value.is_shared:
                users_of[number] = operation.users
        if value.storage == number:
            newest[number] = len(buffers)
            operation.writes.append(len(buffers))
            buffers.append(_buffer(facts, number))
    for number in outputs:
        storage = values[number].storage
        if storage >= 0:
            buffers[newest[storage]].is_output = True
    return operations, buffers


def _buffer(facts: GraphFacts, storage: int) -> Buffer:
    owner = facts.values[storage]
    return Buffer(storage, owner.nbytes, owner.kind is POINTWISE, owner.is_channels_last, owner.is_reshaped)


def write_all_parts(facts: GraphFacts, operations: list[Operation], buffers: list[Buffer], fuse: bool) -> None:
    """Buffers for results of an operation that this pass does not take out of its tuple: the kernel allocates them all.

    A loop that Inductor makes writes only what is read.
    """
    for operation in operations:
        parts = facts.values[operation.value].parts
        if len(operation.writes) >= len(parts) or (fuse and operation.kind is not EXTERN):
            continue
        written = {buffers[write].storage for write in operation.writes}
        for part in parts:
            if part not in written:
                operation.writes.append(len(buffers))
                buffers.append(_buffer(facts, part))


def merge_matmuls(facts: GraphFacts, operations: list[Operation], buffers: list[Buffer]) -> None:
    """Merge matmuls into the additions that alone read them, as Inductor does (`addmm`): gradients of a shared weight.

    The matmul then runs where the addition runs, and its inputs are held until there.
    """
    additions = [n for n, operation in enumerate(operations) if facts.values[operation.value].matmul_terms]
    if not additions:
        return
    writer = {write: n for n, operation in enumerate(operations) for write in operation.writes}
    for position in additions:
        addition = operations[position]
        for read, _ in addition.reads:
            buffer = buffers[read]
            is_matmul = buffer.storage in facts.values[addition.value].matmul_terms and read in writer
            if not is_matmul or len(buffer.readers) > 1 or buffer.is_output:
                continue
            matmul = operations[writer[read]]
            addition.reads = [other for other in addition.reads if other[0] != read] + matmul.reads
            addition.kind, addition.merged_matmul = EXTERN, matmul.value
            matmul.kind, matmul.writes = VIEW, []
            for source, _ in matmul.reads:
                readers = buffers[source].readers
                buffers[source].readers = [position if reader == writer[read] else reader for reader in readers]
            break
