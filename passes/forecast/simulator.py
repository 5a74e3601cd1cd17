"""Replay a plan over forward and backward: live bytes at every kernel, the peak, and what fills it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from autockpt.passes.forecast.arrays import index
from autockpt.passes.forecast.clock import Clock, Times
from autockpt.passes.forecast.fuse import FusedPass, lower
from autockpt.passes.forecast.replay import Replayed, live_at, replay
from autockpt.passes.graph import Role
from autockpt.passes.problem import Lowering, Plan, Problem


class Content(Enum):
    """What a live byte is there for."""

    PARAMETER = "parameters"
    INPUT = "inputs"
    SAVED = "saved"
    RECOMPUTED = "recomputed"
    GRADIENT = "gradients"
    OUTPUT = "outputs and their tangents"
    TEMPORARY = "temporaries"
    WORKSPACE = "workspace"
    MARGIN = "margin"


@dataclass(frozen=True, slots=True)
class Live:
    name: str
    nbytes: int
    content: Content


@dataclass(frozen=True, slots=True)
class Moment:
    """While one kernel runs, its inputs and outputs both live."""

    operation: str
    in_backward: bool
    live_bytes: int


@dataclass(frozen=True, slots=True)
class Peak:
    operation: str
    run: int
    """How often the operation has run before in the same pass."""
    in_backward: bool
    live_bytes: int
    live: tuple[Live, ...]


@dataclass(frozen=True)
class Forecast:
    peak: Moment
    at_peak: tuple[Live, ...]
    """Largest first; all parameters are one entry, and all inputs."""
    timeline: tuple[Moment, ...]
    saved_bytes: int
    graph_input_bytes: int
    recompute_seconds: float
    forward_times: Times
    backward_times: Times
    """Seconds by kind of kernel, recomputation included."""

    @property
    def step_seconds(self) -> float:
        return sum(self.forward_times.values()) + sum(self.backward_times.values())

    @property
    def peak_bytes(self) -> int:
        return self.peak.live_bytes

    @property
    def recompute_share(self) -> float:
        return self.recompute_seconds / self.step_seconds if self.step_seconds else 0.0

    def filled_by(self) -> dict[Content, int]:
        """Bytes at the peak by what they are there for."""
        totals = dict.fromkeys(Content, 0)
        for live in self.at_peak:
            totals[live.content] += live.nbytes
        return {content: nbytes for content, nbytes in totals.items() if nbytes}


def forecast(problem: Problem, plan: Plan) -> Forecast:
    """Everything that a report shows of a plan."""
    return Simulator(problem).forecast(plan)


class Simulator:
    """Replays many plans of one problem; what they share is computed once."""

    def __init__(self, problem: Problem) -> None:
        graph = problem.graph
        self.problem = problem
        self.ix = index(problem)
        self._fuse = problem.lowering is Lowering.INDUCTOR
        self.graph_inputs = self._owners(v.name for v in graph.values if v.role in (Role.PARAMETER, Role.INPUT))
        self._tangents = self._owners(v.name for v in graph.values if v.role is Role.TANGENT)
        self._outputs = self._owners(graph.forward_outputs) - self.graph_inputs
        self._required = [n for n, v in enumerate(graph.values) if self._runs_forward(v.name)]
        self._graph_input_bytes = graph.graph_input_bytes
        self._static_bytes = problem.static_bytes
        self._forwards: dict[frozenset[str], tuple[FusedPass, Replayed, int]] = {}
        """Of what was saved last: plans that keep the same have the same forward."""
        self._last: tuple[Plan, tuple[FusedPass, Replayed, int]] | None = None
        """The plan that was asked for last, and its backward."""
        self.clock = Clock.of(problem, self.ix)

    def peak_bytes(self, plan: Plan) -> int:
        return max(self._live(*self._forward(plan)), self._live(*self._backward(plan)))

    def at_peak(self, plan: Plan) -> Peak:
        """The worst moment and what lives there, without the rest of a forecast."""
        passes = [self._forward(plan), self._backward(plan)]
        worst = max(passes, key=lambda during: self._live(*during))
        fused, replayed, _ = worst
        if not fused.kernels:
            return Peak("", 0, False, self._live(*worst), ())
        in_backward, live_bytes = worst is passes[1], self._live(*worst)
        launch = max(range(len(replayed.live)), key=replayed.live.__getitem__)
        number, kernel = next((n, k) for n, k in enumerate(fused.kernels) if k.launch == launch)
        run = sum(other.operation == kernel.operation for other in fused.kernels[:number])
        moment = Moment(self.ix.names[kernel.operation], in_backward, live_bytes)
        return Peak(moment.operation, run, in_backward, live_bytes, self._at_peak(plan, worst, moment))

    def passes(self, plan: Plan) -> list[tuple[FusedPass, Replayed, int]]:
        """Forward and backward as kernels, what lives during each launch, and the bytes that live all along."""
        return [self._forward(plan), self._backward(plan)]

    def launches(self, plan: Plan) -> list[tuple[FusedPass, list[int]]]:
        """Both passes as kernels, with all the bytes that live during each launch."""
        passes = [self._forward(plan), self._backward(plan)]
        return [(fused, [self.with_margin(live) + base for live in replayed.live]) for fused, replayed, base in passes]

    def recompute_seconds(self, plan: Plan) -> float:
        """Seconds of what runs more often than once in the step."""
        required = self.problem.graph.required_forward
        runs: dict[str, int] = {}
        for name in plan.backward:
            runs[name] = runs.get(name, 0) + 1
        once = required | plan.saved
        return sum(
            self.problem.seconds[name] * (count - (name not in once))
            for name, count in runs.items()
            if count > 1 or name in once
        )

    def forecast(self, plan: Plan) -> Forecast:
        passes = [self._forward(plan), self._backward(plan)]
        timeline = [
            Moment(self.ix.names[kernel.operation], bool(number), self.with_margin(replayed.live[kernel.launch]) + base)
            for number, (fused, replayed, base) in enumerate(passes)
            for kernel in fused.kernels
        ]
        peak = max(timeline, key=lambda moment: moment.live_bytes, default=Moment("", False, self._static_bytes))
        forward_times, backward_times = (self.clock.times(fused) for fused, *_ in passes)
        return Forecast(
            peak=peak,
            at_peak=self._at_peak(plan, passes[peak.in_backward], peak),
            timeline=tuple(timeline),
            saved_bytes=sum(self.problem.graph.bytes_of(name) for name in plan.saved),
            graph_input_bytes=self._graph_input_bytes,
            recompute_seconds=self.recompute_seconds(plan),
            forward_times=forward_times,
            backward_times=backward_times,
        )

    def step_seconds(self, plan: Plan) -> float:
        """Of the whole step as kernels, fusion and memory traffic counted."""
        return sum(self.clock.seconds(fused) for fused, *_ in (self._forward(plan), self._backward(plan)))

    def _runs_forward(self, name: str) -> bool:
        return name in self.problem.graph.required_forward and self.problem.graph.by_name[name].role is Role.FORWARD

    def _owners(self, names: Iterable[str]) -> set[int]:
        owners = (self.ix.owner[self.ix.index[name]] for name in names)
        return {owner for owner in owners if owner >= 0}

    def _forward(self, plan: Plan) -> tuple[FusedPass, Replayed, int]:
        if plan.saved not in self._forwards:
            self._forwards.clear()
            self._forwards[plan.saved] = self._lower_forward(plan)
        return self._forwards[plan.saved]

    def _lower_forward(self, plan: Plan) -> tuple[FusedPass, Replayed, int]:
        extra = self.problem.graph.cone(list(plan.saved)) - self.problem.graph.required_forward
        more = [self.ix.index[name] for name in extra if self.problem.graph.by_name[name].role is Role.FORWARD]
        sequence: Sequence[int] = sorted([*self._required, *more]) if more else self._required
        outputs = self._outputs | self._owners(plan.saved)
        fused = lower(self.ix, sequence, self.graph_inputs, outputs, self._fuse)
        return fused, replay(fused, self.graph_inputs, set()), self._static_bytes

    def _backward(self, plan: Plan) -> tuple[FusedPass, Replayed, int]:
        if self._last is None or self._last[0] is not plan:
            self._last = plan, self._lower_backward(plan)
        return self._last[1]

    def _lower_backward(self, plan: Plan) -> tuple[FusedPass, Replayed, int]:
        ix, graph = self.ix, self.problem.graph
        saved = self._owners(plan.saved)
        held = self._outputs | self._tangents
        start = list(dict.fromkeys([*self.graph_inputs, *self._tangents, *saved]))
        sequence = [ix.index[name] for name in plan.backward]
        outputs = [ix.index[name] for name in graph.backward_outputs]
        fused = lower(ix, sequence, start, outputs, self._fuse)
        waiting = sum(ix.nbytes[owner] for owner in self._outputs - saved)
        return fused, replay(fused, self.graph_inputs, held), self._static_bytes + waiting

    def _live(self, fused: FusedPass, replayed: Replayed, base: int) -> int:
        return self.with_margin(max(replayed.live, default=0)) + base

    def with_margin(self, live_bytes: int) -> int:
        return live_bytes + int(live_bytes * self.problem.margin)

    def _at_peak(self, plan: Plan, during: tuple[FusedPass, Replayed, int], peak: Moment) -> tuple[Live, ...]:
        fused, replayed, base = during
        if not fused.kernels:
            return tuple(self._given())
        launch = next(n for n, live in enumerate(replayed.live) if self.with_margin(live) + base == peak.live_bytes)
        margin = peak.live_bytes - base - replayed.live[launch]
        found = self._given()
        for number in live_at(fused, replayed, launch):
            buffer = fused.buffers[number]
            if buffer.owner not in self.graph_inputs:
                name = self.ix.names[buffer.owner]
                content = self.content(plan, name, buffer.is_output, peak.in_backward, number < fused.started)
                found.append(Live(name, buffer.nbytes, content))
        if base > self._static_bytes:
            found.append(Live("forward outputs", base - self._static_bytes, Content.OUTPUT))
        if self.problem.extra_static_bytes:
            found.append(Live("copies and scalars", self.problem.extra_static_bytes, Content.WORKSPACE))
        for kernel in fused.kernels:
            if kernel.launch == launch and kernel.scratch:
                found.append(Live(self.ix.names[kernel.operation], kernel.scratch, Content.WORKSPACE))
        if margin:
            found.append(Live("margin", margin, Content.MARGIN))
        return tuple(sorted(found, key=lambda live: -live.nbytes))

    def _given(self) -> list[Live]:
        parameters = self.problem.graph.parameter_bytes
        given = [
            Live("parameters", parameters, Content.PARAMETER),
            Live("inputs", self._graph_input_bytes - parameters, Content.INPUT),
        ]
        return [live for live in given if live.nbytes]

    def content(self, plan: Plan, name: str, is_output: bool, in_backward: bool, started: bool) -> Content:
        role = self.problem.graph.by_name[name].role
        if name in plan.saved and (started or not in_backward):
            return Content.SAVED
        if role is Role.TANGENT or (is_output and not in_backward):
            return Content.OUTPUT
        if is_output:
            return Content.GRADIENT
        return Content.RECOMPUTED if in_backward and role is Role.FORWARD else Content.TEMPORARY
