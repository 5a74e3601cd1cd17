"""Seconds of a pass as kernels: what each computes and moves after fusion, and not what its operations would alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from autockpt.cost_models import DeviceProfile
from autockpt.cost_models.roofline import arithmetic_seconds, fresh_seconds, traffic_seconds
from autockpt.passes.forecast.arrays import GraphArrays
from autockpt.passes.forecast.calls import Kernel
from autockpt.passes.forecast.fuse import FusedPass
from autockpt.passes.graph import Kind, Value
from autockpt.passes.problem import Problem, work_of_value


class Family(Enum):
    """Kernels that are told apart in a report of where the time goes."""

    MATMUL = "matmul"
    ATTENTION = "attention"
    CONVOLUTION = "convolution"
    OTHER = "loops and the rest"


Times = dict[Family, float]


@dataclass(frozen=True)
class Clock:
    """Reads how long a fused pass takes. Lists have one entry a value, as in `GraphArrays`."""

    device: DeviceProfile | None
    """None: loops take as long as their operations would alone."""
    alone: Sequence[float]
    """Of an operation that is a kernel of its own."""
    added: Sequence[float]
    """Of an operation inside a loop that runs anyway."""
    itemsize: Sequence[int]
    family: Sequence[Family]

    @classmethod
    def of(cls, problem: Problem, ix: GraphArrays) -> Clock:
        alone = [problem.seconds[name] for name in ix.names]
        added = [_added(problem, value) for value in problem.graph.values] if problem.device else alone
        itemsize = [value.spec.itemsize if value.spec else 1 for value in problem.graph.values]
        return cls(problem.device, alone, added, itemsize, [_family(problem, value) for value in problem.graph.values])

    def seconds(self, fused: FusedPass) -> float:
        return sum(self.times(fused).values())

    def times(self, fused: FusedPass) -> Times:
        """Seconds of a pass by family. Launches count once for all loops that share one."""
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

    def _parts(self, fused: FusedPass) -> Iterator[tuple[int, Family, float]]:
        """Launch, family and seconds of all that takes time."""
        for kernel in fused.kernels:
            if kernel.fusible:
                yield kernel.launch, Family.OTHER, self._loop_seconds(kernel, fused)
            else:
                for value, _ in kernel.operations:
                    yield kernel.launch, self.family[value], self.alone[value]
            yield kernel.launch, Family.OTHER, self._first_touch(kernel, fused)
        if self.device:
            for launch in {kernel.launch for kernel in fused.kernels if kernel.fusible}:
                yield launch, Family.OTHER, self.device.launch_seconds

    def _loop_seconds(self, kernel: Kernel, fused: FusedPass) -> float:
        arithmetic = sum(self.added[value] for value, _ in kernel.operations)
        if self.device is None:
            return arithmetic
        return max(arithmetic, traffic_seconds(self._moved(kernel, fused), self.device))

    def _first_touch(self, kernel: Kernel, fused: FusedPass) -> float:
        """Of what is so large that its pages come anew every time."""
        if self.device is None or not self.device.fresh_above_bytes:
            return 0.0
        return sum(fresh_seconds(fused.buffers[write].nbytes, self.device) for write in kernel.writes)

    def _moved(self, kernel: Kernel, fused: FusedPass) -> float:
        """A loop reads no more of a buffer than one element a turn: a few rows of an embedding, not the table."""
        turns = kernel.domain[0] * kernel.domain[1]
        moved = sum(fused.buffers[write].nbytes for write in kernel.writes)
        for read in kernel.reads:
            buffer = fused.buffers[read]
            moved += min(buffer.nbytes, turns * self.itemsize[buffer.owner])
        return moved


def _added(problem: Problem, value: Value) -> float:
    if problem.device is None or value.kind not in (Kind.POINTWISE, Kind.REDUCTION):
        return 0.0
    return arithmetic_seconds(work_of_value(problem.graph, value), problem.device)


def _family(problem: Problem, value: Value) -> Family:
    work = work_of_value(problem.graph, value) if value.kind is Kind.EXTERN else None
    if work is None or not work.matrix_flops:
        return Family.OTHER
    return next((family for family in Family if family.value in work.family), Family.CONVOLUTION)
