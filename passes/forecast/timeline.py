"""A plan told launch by launch: when each kernel runs, and which blocks of memory live meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from autockpt.passes.forecast.calls import Kernel
from autockpt.passes.forecast.fuse import FusedPass
from autockpt.passes.forecast.replay import Replayed
from autockpt.passes.forecast.simulator import Content, Simulator
from autockpt.passes.graph import Role
from autockpt.passes.problem import Plan


@dataclass(frozen=True, slots=True)
class Launch:
    operation: str
    in_backward: bool
    recomputes: bool
    """Whether it was first made for something that the forward had computed already."""
    start_seconds: float
    seconds: float
    margin_bytes: int
    """What a forecast adds for what it does not see."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """One place in memory, from the launch that writes it to the last that reads it."""

    name: str
    nbytes: int
    content: Content
    first_launch: int
    """-1: there before the first launch."""
    last_launch: int


@dataclass(frozen=True)
class Timeline:
    launches: tuple[Launch, ...]
    """The forward's, then the backward's."""
    allocations: tuple[Allocation, ...]

    def live(self) -> list[dict[Content, int]]:
        """Bytes by what they are there for, during each launch."""
        count = len(self.launches)
        changes = {content: [0] * (count + 1) for content in Content}
        for block in self.allocations:
            changes[block.content][max(block.first_launch, 0)] += block.nbytes
            changes[block.content][block.last_launch + 1] -= block.nbytes
        running = {content: list(accumulate(change)) for content, change in changes.items()}
        stacked = [{content: running[content][n] for content in Content} for n in range(count)]
        for bytes_by_content, launch in zip(stacked, self.launches, strict=True):
            bytes_by_content[Content.MARGIN] += launch.margin_bytes
        return stacked


def build_timeline(simulator: Simulator, plan: Plan) -> Timeline:
    launches = tuple(_launches(simulator, plan))
    forward, backward = simulator.passes(plan)
    turn, end = sum(not launch.in_backward for launch in launches), len(launches) - 1
    before = [*_blocks(simulator, plan, forward, False, 0), *_scratch(simulator, forward, 0)]
    after = [*_blocks(simulator, plan, backward, True, turn), *_scratch(simulator, backward, turn)]
    return Timeline(launches, (*_standing(simulator, end), *_joined(simulator, before, after, turn, end)))


def _launches(simulator: Simulator, plan: Plan) -> Iterator[Launch]:
    graph, start = simulator.problem.graph, 0.0
    for in_backward, (fused, replayed, _) in enumerate(simulator.passes(plan)):
        seconds = simulator.clock.launches(fused)
        first = {kernel.launch: kernel.operation for kernel in reversed(fused.kernels)}
        for launch, live in enumerate(replayed.live):
            name = simulator.ix.names[first[launch]]
            again = bool(in_backward) and graph.by_name[name].role is Role.FORWARD and name in graph.required_forward
            margin = simulator.with_margin(live) - live
            yield Launch(name, bool(in_backward), again, start, seconds[launch], margin)
            start += seconds[launch]


def _blocks(
    simulator: Simulator, plan: Plan, during: tuple[FusedPass, Replayed, int], in_backward: bool, first: int
) -> Iterator[Allocation]:
    """Of one pass, counted from its first launch; see `replay.live_at` for when a buffer lives."""
    fused, replayed, _ = during
    end = len(replayed.live) - 1
    overwritten = {over: replayed.made[number] for number, over in replayed.reused.items()}
    for number, buffer in enumerate(fused.buffers):
        started = number < fused.started
        born = -1 if started else replayed.made.get(number)
        if born is None or buffer.owner in simulator.graph_inputs:
            continue
        last = end if started or buffer.is_output else born
        dies = overwritten.get(number, replayed.last_read.get(number, last))
        born += number in replayed.reused
        if born <= dies:
            name = simulator.ix.names[buffer.owner]
            content = simulator.content(plan, name, buffer.is_output, in_backward, started)
            yield Allocation(name, buffer.nbytes, content, born + first, dies + first)


def _scratch(simulator: Simulator, during: tuple[FusedPass, Replayed, int], first: int) -> Iterator[Allocation]:
    """Kernels of one launch run one after the other: the largest workspace is what counts."""
    largest: dict[int, Kernel] = {}
    for kernel in during[0].kernels:
        if kernel.scratch > (largest[kernel.launch].scratch if kernel.launch in largest else 0):
            largest[kernel.launch] = kernel
    for launch, kernel in largest.items():
        name = simulator.ix.names[kernel.operation]
        yield Allocation(name, kernel.scratch, Content.WORKSPACE, launch + first, launch + first)


def _joined(
    simulator: Simulator, before: list[Allocation], after: list[Allocation], turn: int, end: int
) -> Iterator[Allocation]:
    """What crosses from one pass to the other is one block: it lives until the backward lets it go."""
    crossing = {block.name: block for block in after if block.first_launch < turn}
    outputs = simulator.problem.graph.output_storages
    for block in before:
        if block.content is Content.WORKSPACE or (block.name not in crossing and block.name not in outputs):
            yield block
        else:
            later = crossing.pop(block.name, None)
            yield replace(block, last_launch=end if block.name in outputs or later is None else later.last_launch)
    yield from (block for block in after if block.first_launch >= turn)
    yield from (replace(block, first_launch=turn) for block in crossing.values())


def _standing(simulator: Simulator, end: int) -> Iterator[Allocation]:
    graph = simulator.problem.graph
    others = graph.graph_input_bytes - graph.parameter_bytes
    yield Allocation("parameters", graph.parameter_bytes, Content.PARAMETER, -1, end)
    yield Allocation("inputs", others, Content.INPUT, -1, end)
    yield Allocation("copies and scalars", simulator.problem.extra_static_bytes, Content.WORKSPACE, -1, end)
