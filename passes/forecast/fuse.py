"""Which loops Inductor fuses, and so which buffers it allocates: a pass of the graph as kernels.

Loops over the same elements become one kernel, and a buffer that is written and read only inside one kernel is never
allocated. A loop that reads a buffer through an index map needs all of it to be written before: it stays a kernel of
its own, and the buffer is allocated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from autockpt.passes.forecast.facts import VIEW, GraphFacts, LoopSizes
from autockpt.passes.forecast.operations import (
    Buffer,
    Kernel,
    Operation,
    list_operations,
    merge_matmuls,
    write_all_parts,
)
from autockpt.passes.forecast.realize import realize


@dataclass(slots=True)
class FusedPass:
    """A pass in order of execution. Kernels refer to buffers by position."""

    kernels: list[Kernel]
    buffers: list[Buffer]
    initial_buffers: int
    """So many of the first buffers exist before the first kernel runs."""


def fuse_pass(
    facts: GraphFacts, sequence: Sequence[int], initial: Collection[int], outputs: Iterable[int], fuse: bool
) -> FusedPass:
    """Kernels for these values, run in this order, from the `initial` storages; one kernel each without `fuse`."""
    operations, buffers = list_operations(facts, sequence, initial, outputs)
    write_all_parts(facts, operations, buffers, fuse)
    if fuse:
        merge_matmuls(facts, operations, buffers)
        kernels = _fuse(realize(facts, sequence, operations, buffers), buffers)
    else:
        kernels = [_unfused(facts, operation) for operation in operations if operation.kind is not VIEW]
    _number_launches(kernels, grouped=fuse and facts.on_cpu)
    return FusedPass(kernels, buffers, len(initial))


def _unfused(facts: GraphFacts, operation: Operation) -> Kernel:
    value = facts.values[operation.value]
    return Kernel(
        operation=operation.value,
        is_loop=False,
        reads={read for read, _ in operation.reads},
        mapped_reads=set(),
        writes=operation.writes,
        loop_sizes=value.loop_sizes,
        computed={(operation.value, ())},
        workspace_bytes=value.workspace_bytes,
        is_wait=value.is_wait,
    )


def _number_launches(kernels: list[Kernel], grouped: bool) -> None:
    """Inductor's C++ backend puts all loops between two library calls into one function (`grouped`)."""
    launch, after_loop = -1, False
    for kernel in kernels:
        joins_previous = grouped and after_loop and kernel.is_loop
        launch += not joins_previous
        kernel.launch = launch
        after_loop = kernel.is_loop


def _fuse(kernels: list[Kernel], buffers: list[Buffer]) -> list[Kernel]:
    """Merge loops over the same elements, but never across a library call: our scheduler keeps Inductor to that."""
    fused: list[Kernel] = []
    loops_since_call: list[Kernel] = []
    for kernel in kernels:
        if not kernel.is_loop:
            fused.append(kernel)
            loops_since_call = []
            continue
        partner = _partner(kernel, loops_since_call)
        if partner is None:
            kernel.fused_loops = [(set(kernel.reads), kernel.writes)]
            fused.append(kernel)
            loops_since_call.append(kernel)
        else:
            _merge(partner, kernel)
    _drop_internal_buffers(fused, buffers)
    return fused


def _partner(kernel: Kernel, loops: list[Kernel]) -> Kernel | None:
    """The last of these loops that this one can join: data in common, the same elements, nothing needed in between."""
    for candidate in reversed(loops):
        reads_result = not kernel.reads.isdisjoint(candidate.writes)
        if reads_result and not kernel.mapped_reads.isdisjoint(candidate.writes):
            return None
        shares_data = reads_result or not kernel.reads.isdisjoint(candidate.reads)
        if shares_data and _are_same_loops(candidate.loop_sizes, kernel.loop_sizes):
            return candidate
        if reads_result:
            return None
    return None


def _merge(kernel: Kernel, other: Kernel) -> None:
    kernel.fused_loops.append((other.reads, other.writes))
    kernel.reads |= other.reads
    kernel.mapped_reads |= other.mapped_reads
    kernel.computed |= other.computed
    kernel.writes = kernel.writes + other.writes
    kernel.loop_sizes = max(kernel.loop_sizes, other.loop_sizes, key=lambda sizes: (sizes[1] > 1, sizes[0]))


def _are_same_loops(one: LoopSizes, other: LoopSizes) -> bool:
    if one == other:
        return True
    if one[1] > 1 and other[1] > 1:
        return False
    pointwise, reduction = (other, one) if one[1] > 1 else (one, other)
    return pointwise[0] in (reduction[0], reduction[0] * reduction[1])


def _drop_internal_buffers(kernels: list[Kernel], buffers: list[Buffer]) -> None:
    """A pointwise buffer that only its own kernel reads is never allocated; a reduction's result always is."""
    read_by_others: set[int] = set()
    for kernel in kernels:
        read_by_others.update(kernel.reads.difference(kernel.writes))
    for kernel in kernels:
        internal = kernel.reads.intersection(kernel.writes)
        kernel.writes = [
            write
            for write in kernel.writes
            if write in read_by_others or buffers[write].is_output or not buffers[write].is_pointwise
        ]
        kernel.reads -= internal
