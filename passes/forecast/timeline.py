"""A plan launch by launch: when each kernel runs, and which allocations are live meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from autockpt.passes.forecast.copies.timed import TimedCopy, timed_copies
from autockpt.passes.forecast.operations import Kernel
from autockpt.passes.forecast.replay import ReplayedPass, lifetimes
from autockpt.passes.forecast.result import Content
from autockpt.passes.forecast.simulator import Simulator
from autockpt.passes.graph import Role
from autockpt.passes.problem import Plan


@dataclass(frozen=True, slots=True)
class Launch:
    operation: str
    in_backward: bool
    recomputes: bool
    """Whether its first operation already ran in the forward."""
    start_seconds: float
    seconds: float
    margin_bytes: int
    """What the forecast adds for what it does not model."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """One piece of memory, from the launch that writes it to the last that reads it."""

    name: str
    nbytes: int
    content: Content
    first_launch: int
    """-1: it exists before the first launch."""
    last_launch: int


@dataclass(frozen=True)
class Timeline:
    launches: tuple[Launch, ...]
    """The forward's, then the backward's."""
    allocations: tuple[Allocation, ...]
    copies: tuple[TimedCopy, ...] = ()
    """To the host and back, in the order in which they start."""

    def live(self) -> list[dict[Content, int]]:
        """Bytes by content, during each launch."""
        count = len(self.launches)
        changes = {content: [0] * (count + 1) for content in Content}
        for allocation in self.allocations:
            changes[allocation.content][max(allocation.first_launch, 0)] += allocation.nbytes
            changes[allocation.content][allocation.last_launch + 1] -= allocation.nbytes
        running = {content: list(accumulate(change)) for content, change in changes.items()}
        live = [{content: running[content][number] for content in Content} for number in range(count)]
        for bytes_by_content, launch in zip(live, self.launches, strict=True):
            bytes_by_content[Content.MARGIN] += launch.margin_bytes
        return live


def build_timeline(simulator: Simulator, plan: Plan) -> Timeline:
    forward, backward = simulator.passes(plan)
    launches = tuple(_launches(simulator, (forward, backward)))
    boundary, end = len(forward.replayed.live_bytes), len(launches) - 1
    before = [*_buffers(simulator, plan, forward, 0), *_workspaces(simulator, forward, 0)]
    after = [*_buffers(simulator, plan, backward, boundary), *_workspaces(simulator, backward, boundary)]
    joined = _joined(simulator, before, after, boundary, end)
    held = (allocation for allocation in joined if allocation.first_launch <= allocation.last_launch)
    return Timeline(launches, (*_static(simulator, end), *held), tuple(_copies(simulator, (forward, backward))))


def _launches(simulator: Simulator, passes: tuple[ReplayedPass, ReplayedPass]) -> Iterator[Launch]:
    graph, start = simulator.problem.graph, 0.0
    for replayed in passes:
        seconds = simulator.clock.launches(replayed.fused)
        waits = dict(replayed.engine.waits) if replayed.engine else {}
        first_operation = {kernel.launch: kernel.operation for kernel in reversed(replayed.fused.kernels)}
        for number, live_bytes in enumerate(replayed.replayed.live_bytes):
            name = simulator.facts.values[first_operation[number]].name
            ran_before = graph.by_name[name].role is Role.FORWARD and name in graph.required_forward
            recomputes = replayed.in_backward and ran_before
            margin = replayed.with_margin(live_bytes) - live_bytes
            start += waits.get(number, 0.0)
            yield Launch(name, replayed.in_backward, recomputes, start, seconds[number], margin)
            start += seconds[number]
        start += waits.get(len(replayed.replayed.live_bytes), 0.0)


def _copies(simulator: Simulator, passes: tuple[ReplayedPass, ReplayedPass]) -> Iterator[TimedCopy]:
    start = 0.0
    for replayed in passes:
        yield from timed_copies(simulator.problem.graph, replayed.engine, start, replayed.in_backward)
        start += simulator.clock.starts(replayed.fused)[-1]
        start += replayed.engine.exposed_seconds if replayed.engine else 0.0


def _buffers(simulator: Simulator, plan: Plan, during: ReplayedPass, offset: int) -> Iterator[Allocation]:
    """Buffers of one pass, whose first launch has number `offset`."""
    for number, first, last in lifetimes(during.fused, during.replayed):
        buffer = during.fused.buffers[number]
        if buffer.storage not in simulator.graph_inputs:
            name, is_initial = simulator.facts.values[buffer.storage].name, number < during.fused.initial_buffers
            content = simulator.content(plan, name, buffer.is_output, during.in_backward, is_initial)
            yield Allocation(name, buffer.nbytes, content, first + offset, last + offset)


def _workspaces(simulator: Simulator, during: ReplayedPass, offset: int) -> Iterator[Allocation]:
    """The largest of each launch: its kernels run one after another. After the last: autograd's copy of a gradient."""
    largest: dict[int, Kernel] = {}
    for kernel in during.fused.kernels:
        known = largest[kernel.launch].workspace_bytes if kernel.launch in largest else 0
        if kernel.workspace_bytes > known:
            largest[kernel.launch] = kernel
    for launch, kernel in largest.items():
        name = simulator.facts.values[kernel.operation].name
        yield Allocation(name, kernel.workspace_bytes, Content.WORKSPACE, launch + offset, launch + offset)
    if copied := during.replayed.copied_bytes:
        last = offset + len(during.replayed.live_bytes) - 1
        yield Allocation("copy of a gradient", copied, Content.WORKSPACE, last, last)


def _joined(
    simulator: Simulator, before: list[Allocation], after: list[Allocation], boundary: int, end: int
) -> Iterator[Allocation]:
    """One allocation for what crosses the boundary, with the last launch that it has in the backward."""
    crossing = {allocation.name: allocation for allocation in after if allocation.first_launch < boundary}
    outputs = simulator.problem.graph.output_storages
    for allocation in before:
        name, is_output = allocation.name, allocation.name in outputs
        if allocation.content is Content.WORKSPACE or (name not in crossing and not is_output):
            yield allocation
            continue
        later = crossing.pop(name, None)
        last_launch = end if is_output or later is None else later.last_launch
        yield replace(allocation, last_launch=last_launch)
    yield from (allocation for allocation in after if allocation.first_launch >= boundary)
    yield from (replace(allocation, first_launch=boundary) for allocation in crossing.values())


def _static(simulator: Simulator, end: int) -> Iterator[Allocation]:
    graph = simulator.problem.graph
    inputs = graph.graph_input_bytes - graph.parameter_bytes
    yield Allocation("parameters", graph.parameter_bytes, Content.PARAMETER, -1, end)
    yield Allocation("inputs", inputs, Content.INPUT, -1, end)
    yield Allocation("copies and scalars", simulator.problem.extra_static_bytes, Content.WORKSPACE, -1, end)
