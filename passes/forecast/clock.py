"""Seconds of a pass as fused kernels: a loop takes as long as its arithmetic or its memory traffic, whichever is more.

Fusion removes traffic and launches, so these seconds are fewer than the sum over operations that run alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

from autockpt.cost_models import DeviceProfile
from autockpt.cost_models.roofline import arithmetic_seconds, fresh_seconds, traffic_seconds
from autockpt.passes.forecast.fuse import FusedPass
from autockpt.passes.forecast.operations import Kernel
from autockpt.passes.graph import Kind, Value
from autockpt.passes.problem import Problem, work_of_value


class Family(Enum):
    """Kinds of kernels in a report of where the time goes."""

    MATMUL = "matmul"
    ATTENTION = "attention"
    CONVOLUTION = "convolution"
    OTHER = "loops and the rest"


Times = dict[Family, float]
"""Seconds by family."""


@dataclass(frozen=True)
class Clock:
    """Prices fused passes. Sequences have one entry for each value of the graph."""

    device: DeviceProfile | None
    """None: a loop takes the sum of its operations' seconds."""
    alone_seconds: Sequence[float]
    """Of an operation that is a kernel of its own."""
    arithmetic_seconds: Sequence[float]
    """Of an operation inside a loop, without memory traffic and launch."""
    itemsize: Sequence[int]
    family: Sequence[Family]

    @classmethod
    def of(cls, problem: Problem) -> Clock:
        values = problem.graph.values
        alone = [problem.seconds[value.name] for value in values]
        return cls(
            device=problem.device,
            alone_seconds=alone,
            arithmetic_seconds=[_arithmetic(problem, value) for value in values] if problem.device else alone,
            itemsize=[value.spec.itemsize if value.spec else 1 for value in values],
            family=[_family(problem, value) for value in values],
        )

    def seconds(self, fused: FusedPass) -> float:
        return sum(self.times(fused).values())

    def times(self, fused: FusedPass) -> Times:
        """Seconds of a pass by family."""
        times = dict.fromkeys(Family, 0.0)
        for _, family, seconds in self._parts(fused):
            times[family] += seconds
        return times

    def launches(self, fused: FusedPass) -> list[float]:
        """Seconds of each launch of a pass, in order."""
        seconds = [0.0] * (fused.kernels[-1].launch + 1 if fused.kernels else 0)
        for launch, _, part in self._parts(fused):
            seconds[launch] += part
        return seconds

    def starts(self, fused: FusedPass) -> list[float]:
        """Seconds from the start of a pass at which each of its launches starts, and last those at which it ends."""
        return list(accumulate(self.launches(fused), initial=0.0))

    def _parts(self, fused: FusedPass) -> Iterator[tuple[int, Family, float]]:
        """Launch, family and seconds of everything that takes time. Loops of one launch share its overhead."""
        for kernel in fused.kernels:
            if kernel.is_loop:
                yield kernel.launch, Family.OTHER, self._loop_seconds(kernel, fused)
            else:
                for value, _ in kernel.computed:
                    yield kernel.launch, self.family[value], self.alone_seconds[value]
            pages = (self.page_seconds(fused.buffers[write].nbytes) for write in kernel.writes)
            yield kernel.launch, Family.OTHER, sum(pages)
        if self.device:
            for launch in {kernel.launch for kernel in fused.kernels if kernel.is_loop}:
                yield launch, Family.OTHER, self.device.launch_seconds

    def _loop_seconds(self, kernel: Kernel, fused: FusedPass) -> float:
        arithmetic = sum(self.arithmetic_seconds[value] for value, _ in kernel.computed)
        if self.device is None:
            return arithmetic
        return max(arithmetic, traffic_seconds(self._moved_bytes(kernel, fused), self.device))

    def page_seconds(self, nbytes: int) -> float:
        """Page faults of a result so large that the allocator gets it from the system anew every time."""
        return fresh_seconds(nbytes, self.device) if self.device else 0.0

    def _moved_bytes(self, kernel: Kernel, fused: FusedPass) -> float:
        """A loop reads at most one element of a buffer in each iteration: some rows of an embedding, not the table."""
        iterations = kernel.loop_sizes[0] * kernel.loop_sizes[1]
        moved = sum(fused.buffers[write].nbytes for write in kernel.writes)
        for read in kernel.reads:
            buffer = fused.buffers[read]
            moved += min(buffer.nbytes, iterations * self.itemsize[buffer.storage])
        return moved


def _arithmetic(problem: Problem, value: Value) -> float:
    if problem.device is None or value.kind not in (Kind.POINTWISE, Kind.REDUCTION):
        return 0.0
    return arithmetic_seconds(work_of_value(problem.graph, value), problem.device)


def _family(problem: Problem, value: Value) -> Family:
    work = work_of_value(problem.graph, value) if value.kind is Kind.EXTERN else None
    if work is None or not work.matrix_flops:
        return Family.OTHER
    return next((family for family in Family if family.value in work.family), Family.CONVOLUTION)
