"""A plan told launch by launch: when each kernel runs, and which blocks of memory live meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from autockpt.passes.forecast.calls import Kernel
from autockpt.passes.forecast.fuse import Lowered
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
class Block:
    """One place in memory, from the launch that writes it to the last that reads it."""

    name: str
    nbytes: int
    content: Content
    born: int
    """-1: there before the first launch."""
    dies: int


@dataclass(frozen=True)
class Timeline:
    launches: tuple[Launch, ...]
    """The forward's, then the backward's."""
    blocks: tuple[Block, ...]

    def live(self) -> list[dict[Content, int]]:
        """Bytes by what they are there for, during each launch."""
        count = len(self.launches)
        changes = {content: [0] * (count + 1) for content in Content}
        for block in self.blocks:
            changes[block.content][max(block.born, 0)] += block.nbytes
            changes[block.content][block.dies + 1] -= block.nbytes
        running = {content: list(accumulate(change)) for content, change in changes.items()}
        stacked = [{content: running[content][n] for content in Content} for n in range(count)]
        for bytes_by_content, launch in zip(stacked, self.launches, strict=True):
            bytes_by_content[Content.MARGIN] += launch.margin_bytes
        return stacked


def tell(simulator: Simulator, plan: Plan) -> Timeline:
    launches = tuple(_launches(simulator, plan))
    forward, backward = simulator.both(plan)
    turn, end = sum(not launch.in_backward for launch in launches), len(launches) - 1
    before = [*_blocks(simulator, plan, forward, False, 0), *_scratch(simulator, forward, 0)]
    after = [*_blocks(simulator, plan, backward, True, turn), *_scratch(simulator, backward, turn)]
    return Timeline(launches, (*_standing(simulator, end), *_joined(simulator, before, after, turn, end)))


def _launches(simulator: Simulator, plan: Plan) -> Iterator[Launch]:
    graph, start = simulator.problem.graph, 0.0
    for in_backward, (lowered, replayed, _) in enumerate(simulator.both(plan)):
        seconds = simulator.clock.launches(lowered)
        first = {kernel.launch: kernel.operation for kernel in reversed(lowered.kernels)}
        for launch, live in enumerate(replayed.live):
            name = simulator.ix.names[first[launch]]
            again = bool(in_backward) and graph.by_name[name].role is Role.FORWARD and name in graph.required_forward
            margin = simulator.with_margin(live) - live
            yield Launch(name, bool(in_backward), again, start, seconds[launch], margin)
            start += seconds[launch]


def _blocks(
    simulator: Simulator, plan: Plan, during: tuple[Lowered, Replayed, int], in_backward: bool, first: int
) -> Iterator[Block]:
    """Of one pass, counted from its first launch; see `replay.live_at` for when a buffer lives."""
    lowered, replayed, _ = during
    end = len(replayed.live) - 1
    overwritten = {over: replayed.made[number] for number, over in replayed.reused.items()}
    for number, buffer in enumerate(lowered.buffers):
        started = number < lowered.started
        born = -1 if started else replayed.made.get(number)
        if born is None or buffer.owner in simulator.givens:
            continue
        last = end if started or buffer.is_output else born
        dies = overwritten.get(number, replayed.last_read.get(number, last))
        born += number in replayed.reused
        if born <= dies:
            name = simulator.ix.names[buffer.owner]
            content = simulator.content(plan, name, buffer.is_output, in_backward, started)
            yield Block(name, buffer.nbytes, content, born + first, dies + first)


def _scratch(simulator: Simulator, during: tuple[Lowered, Replayed, int], first: int) -> Iterator[Block]:
    """Kernels of one launch run one after the other: the largest workspace is what counts."""
    largest: dict[int, Kernel] = {}
    for kernel in during[0].kernels:
        if kernel.scratch > (largest[kernel.launch].scratch if kernel.launch in largest else 0):
            largest[kernel.launch] = kernel
    for launch, kernel in largest.items():
        name = simulator.ix.names[kernel.operation]
        yield Block(name, kernel.scratch, Content.WORKSPACE, launch + first, launch + first)


def _joined(simulator: Simulator, before: list[Block], after: list[Block], turn: int, end: int) -> Iterator[Block]:
    """What crosses from one pass to the other is one block: it lives until the backward lets it go."""
    crossing = {block.name: block for block in after if block.born < turn}
    outputs = simulator.problem.graph.output_storages
    for block in before:
        if block.content is Content.WORKSPACE or (block.name not in crossing and block.name not in outputs):
            yield block
        else:
            later = crossing.pop(block.name, None)
            yield replace(block, dies=end if block.name in outputs or later is None else later.dies)
    yield from (block for block in after if block.born >= turn)
    yield from (replace(block, born=turn) for block in crossing.values())


def _standing(simulator: Simulator, end: int) -> Iterator[Block]:
    graph = simulator.problem.graph
    others = graph.graph_input_bytes - graph.parameter_bytes
    yield Block("parameters", graph.parameter_bytes, Content.PARAMETER, -1, end)
    yield Block("inputs", others, Content.INPUT, -1, end)
    yield Block("copies and scalars", simulator.problem.extra_static_bytes, Content.WORKSPACE, -1, end)
