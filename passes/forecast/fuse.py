"""What Inductor will fuse and what it will allocate: a pass of the graph as kernels that read and write bytes.

Neighbouring loops over the same elements become one kernel, and what is written and read only inside one kernel is
never allocated. A loop that reads elements from other places than they were written to has to wait for the whole of
them: it stays a loop of its own, and what it reads is allocated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autockpt.passes.forecast.arrays import GraphArrays
from autockpt.passes.forecast.calls import Buffer, Kernel, Operation, absorb, allocate
from autockpt.passes.forecast.realize import realize


@dataclass(slots=True)
class FusedPass:
    """A pass in order of execution. Buffers and kernels refer to each other by position."""

    kernels: list[Kernel]
    buffers: list[Buffer]
    started: int
    """The first so many buffers are there before the first kernel."""


def lower(
    ix: GraphArrays, sequence: Sequence[int], given: Iterable[int], outputs: Iterable[int], fuse: bool
) -> FusedPass:
    """Kernels for these operations, run in this order, from the storages in `given`."""
    buffers, calls, started = allocate(ix, sequence, given, outputs)
    if fuse:
        absorb(ix, calls, buffers)
        kernels = _fuse(realize(ix, sequence, calls, buffers), buffers)
    else:
        kernels = [_alone(ix, call) for call in calls]
    _launch(kernels, grouped=fuse and ix.on_cpu)
    return FusedPass(kernels, buffers, started)


def _alone(ix: GraphArrays, call: Operation) -> Kernel:
    return Kernel(
        operation=call.value,
        fusible=False,
        reads={read for read, _ in call.reads},
        bent=set(),
        writes=call.writes,
        domain=ix.domain[call.value],
        operations={(call.value, ())},
        scratch=ix.scratch[call.value],
    )


def _launch(kernels: list[Kernel], grouped: bool) -> None:
    """Inductor's C++ backend puts all loops between two kernels that cannot fuse into one function."""
    launch, before = -1, False
    for kernel in kernels:
        if not (grouped and before and kernel.fusible):
            launch += 1
        kernel.launch = launch
        before = kernel.fusible


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
            home.bent |= kernel.bent
            home.operations |= kernel.operations
            home.writes = home.writes + kernel.writes
            home.domain = _join(home.domain, kernel.domain)
    return _drop_internal(placed, buffers)


def _home(kernel: Kernel, run: list[Kernel]) -> Kernel | None:
    """The last loop of the run that this one can join: shared data, same elements, nothing needed in between."""
    for candidate in reversed(run):
        feeds = not kernel.reads.isdisjoint(candidate.writes)
        if feeds and not kernel.bent.isdisjoint(candidate.writes):
            return None
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
