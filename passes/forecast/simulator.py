"""Replay a plan over forward and backward: live bytes at every kernel, the peak and what fills it, and the seconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from autockpt.passes.forecast.clock import Clock
from autockpt.passes.forecast.copies.link import HostLink
from autockpt.passes.forecast.copies.moments import find_anchors, find_crossings
from autockpt.passes.forecast.copies.replay import Absence, backward_with_copies, forward_with_copies
from autockpt.passes.forecast.facts import GraphFacts
from autockpt.passes.forecast.fuse import fuse_pass
from autockpt.passes.forecast.replay import ReplayedPass, live_at, replay
from autockpt.passes.forecast.result import Content, Forecast, Live, Moment, Peak
from autockpt.passes.graph import Role
from autockpt.passes.problem import Lowering, Plan, Problem, forward_order

_CACHED_REPLAYS = 4
"""One more than the groups of values that an eviction step tries."""


class Simulator:
    """Replays many plans of one problem; what they share is computed once."""

    def __init__(self, problem: Problem) -> None:
        graph = problem.graph
        self.problem = problem
        self.facts = GraphFacts.of(problem)
        self.clock = Clock.of(problem)
        self.graph_inputs = self._storages(v.name for v in graph.values if v.role in (Role.PARAMETER, Role.INPUT))
        self._fuse = problem.lowering is Lowering.INDUCTOR
        self._tangents = self._storages(v.name for v in graph.values if v.role is Role.TANGENT)
        self._outputs = self._storages(graph.forward_outputs) - self.graph_inputs
        # The caller holds outputs and tangents during the backward.
        self._held = self._outputs | self._storages(graph.held_tangents)
        self._required = [number for number, value in enumerate(graph.values) if self._runs_forward(value.name)]
        self._forwards: dict[frozenset[str], ReplayedPass] = {}
        """Plans that save the same values have the same forward."""
        self._backwards: dict[Plan, ReplayedPass] = {}
        self._with_copies: dict[Plan, tuple[ReplayedPass, ReplayedPass]] = {}
        self.link = HostLink.of(problem.device)

    def passes(self, plan: Plan) -> tuple[ReplayedPass, ReplayedPass]:
        """Forward and backward. The last few are cached: callers ask for several figures of the plans they tried."""
        if plan.offloaded:
            return self._passes_with_copies(plan)
        if plan.saved not in self._forwards:
            _drop_oldest(self._forwards)
            self._forwards[plan.saved] = self._forward(plan)
        if plan not in self._backwards:
            _drop_oldest(self._backwards)
            self._backwards[plan] = self._backward(plan)
        return self._forwards[plan.saved], self._backwards[plan]

    def peak_bytes(self, plan: Plan) -> int:
        return max(replayed.peak_bytes for replayed in self.passes(plan))

    def step_seconds(self, plan: Plan) -> float:
        """Of the step as fused kernels; where it waits for copies, that too."""
        return sum(self.pass_seconds(replayed) for replayed in self.passes(plan))

    def pass_seconds(self, replayed: ReplayedPass) -> float:
        seconds = self.clock.seconds(replayed.fused)
        return seconds + replayed.engine.exposed_seconds if replayed.engine else seconds

    def exposed_seconds(self, plan: Plan) -> float:
        """For how long the step waits for copies to and from the host."""
        return sum(replayed.engine.exposed_seconds for replayed in self.passes(plan) if replayed.engine)

    def recompute_seconds(self, plan: Plan) -> float:
        """Of all operations that run more than once in the step, priced one by one, without their first run."""
        run_in_forward = self.problem.graph.required_forward | plan.saved
        runs: dict[str, int] = {}
        for name in plan.backward:
            runs[name] = runs.get(name, 0) + 1
        return sum(
            self.problem.seconds[name] * (count - (name not in run_in_forward))
            for name, count in runs.items()
            if count > 1 or name in run_in_forward
        )

    def at_peak(self, plan: Plan) -> Peak:
        """The peak and what is live there, without the rest of a forecast."""
        worst = max(self.passes(plan), key=lambda replayed: replayed.peak_bytes)
        kernels = worst.fused.kernels
        if not kernels:
            return Peak("", 0, False, worst.peak_bytes, ())
        live_bytes = worst.replayed.live_bytes
        launch = max(range(len(live_bytes)), key=live_bytes.__getitem__)
        number, kernel = next((n, k) for n, k in enumerate(kernels) if k.launch == launch)
        run = sum(other.operation == kernel.operation for other in kernels[:number])
        moment = Moment(self.facts.values[kernel.operation].name, worst.in_backward, worst.peak_bytes)
        return Peak(moment.operation, run, worst.in_backward, worst.peak_bytes, self._live_at(plan, worst, moment))

    def forecast(self, plan: Plan) -> Forecast:
        forward, backward = passes = self.passes(plan)
        moments = [
            Moment(self.facts.values[kernel.operation].name, replayed.in_backward, live_bytes[kernel.launch])
            for replayed in passes
            for live_bytes in [replayed.live_bytes()]
            for kernel in replayed.fused.kernels
        ]
        without_kernels = Moment("", False, self.problem.static_bytes)
        peak = max(moments, key=lambda moment: moment.live_bytes, default=without_kernels)
        return Forecast(
            peak=peak,
            at_peak=self._live_at(plan, passes[peak.in_backward], peak),
            timeline=tuple(moments),
            saved_bytes=sum(self.problem.graph.bytes_of(name) for name in plan.saved - plan.on_host),
            host_bytes=sum(self.problem.graph.bytes_of(name) for name in plan.on_host),
            exposed_seconds=self.exposed_seconds(plan) if plan.offloaded else 0.0,
            graph_input_bytes=self.problem.graph.graph_input_bytes,
            recompute_seconds=self.recompute_seconds(plan),
            forward_times=self.clock.times(forward.fused),
            backward_times=self.clock.times(backward.fused),
        )

    def content(self, plan: Plan, name: str, is_output: bool, in_backward: bool, is_initial: bool) -> Content:
        """What a buffer of the value `name` is for; `is_initial`: it exists before its pass begins."""
        role = self.problem.graph.by_name[name].role
        if name in plan.saved and (is_initial or not in_backward):
            return Content.SAVED
        if role is Role.TANGENT or (is_output and not in_backward):
            return Content.OUTPUT
        if is_output:
            return Content.GRADIENT
        return Content.RECOMPUTED if in_backward and role is Role.FORWARD else Content.TEMPORARY

    def _passes_with_copies(self, plan: Plan) -> tuple[ReplayedPass, ReplayedPass]:
        """The same kernels as without the copies."""
        if plan not in self._with_copies:
            _drop_oldest(self._with_copies)
            forward, backward = self.hosting(replace(plan, offloaded=()), plan.on_host)
            absences = self.absences(plan, forward, backward)
            first, second = self.clock.starts(forward.fused), self.clock.starts(backward.fused)
            self._with_copies[plan] = (
                forward_with_copies(forward, absences, first, self.link),
                backward_with_copies(backward, absences, second, self.link),
            )
        return self._with_copies[plan]

    def hosting(self, plan: Plan, names: Iterable[str]) -> tuple[ReplayedPass, ReplayedPass]:
        """The passes of a plan without copies, in which nothing is written over these values, as over no copy."""
        forward, backward = self.passes(plan)
        not_overwritten = self._tangents | self._storages(names)
        replayed = replay(backward.fused, self.graph_inputs, self._held, not_overwritten)
        return forward, replace(backward, replayed=replayed)

    def forward_sequence(self, plan: Plan) -> list[int]:
        """Values that run in the forward of a plan, by position, in order."""
        return [self.facts.position[name] for name in forward_order(self.problem, plan)]

    def absences(self, plan: Plan, forward: ReplayedPass, backward: ReplayedPass) -> list[Absence]:
        """The moments of a plan's copies in launches. What is beside no library call counts as live for longer."""
        sequence = self.forward_sequence(plan)
        calls = find_anchors(forward.fused, sequence)
        released = {self.facts.values[sequence[anchor.position]].name: anchor.launch for anchor in calls}
        backward_sequence = [self.facts.position[name] for name in plan.backward]
        reloaded = {anchor.position: anchor.launch for anchor in find_anchors(backward.fused, backward_sequence)}
        crossings = find_crossings(self.facts, forward, backward, plan.on_host)
        end = len(forward.replayed.live_bytes) - 1
        return [
            Absence(
                crossing := crossings[offload.name],
                max(released.get(offload.release_after, end), crossing.last_read),
                min(reloaded.get(offload.reload_before, 0), crossing.first_read),
            )
            for offload in plan.offloaded
            if offload.name in crossings
        ]

    def _forward(self, plan: Plan) -> ReplayedPass:
        graph = self.problem.graph
        extra = graph.cone(list(plan.saved)) - graph.required_forward
        more = [self.facts.position[name] for name in extra if graph.by_name[name].role is Role.FORWARD]
        sequence: Sequence[int] = sorted([*self._required, *more]) if more else self._required
        outputs = self._outputs | self._storages(plan.saved)
        fused = fuse_pass(self.facts, sequence, self.graph_inputs, outputs, self._fuse)
        replayed = replay(fused, uncounted=self.graph_inputs, held=set())
        return ReplayedPass(False, fused, replayed, self.problem.static_bytes, self.problem.margin)

    def _backward(self, plan: Plan) -> ReplayedPass:
        saved = self._storages(plan.saved)
        initial = list(dict.fromkeys([*self.graph_inputs, *self._tangents, *saved]))
        sequence = [self.facts.position[name] for name in plan.backward]
        outputs = [self.facts.position[name] for name in self.problem.graph.backward_outputs]
        fused = fuse_pass(self.facts, sequence, initial, outputs, self._fuse)
        # Inductor writes over saved values, never over a tangent.
        # Of Inductor's code the graph does not say in which order in memory it returns gradients.
        copied = 0 if self._fuse else self.problem.graph.copied_gradient_bytes
        replayed = replay(fused, self.graph_inputs, self._held, not_overwritten=self._tangents, copied_after=copied)
        unsaved_outputs = sum(self.facts.values[storage].nbytes for storage in self._outputs - saved)
        return ReplayedPass(True, fused, replayed, self.problem.static_bytes + unsaved_outputs, self.problem.margin)

    def _runs_forward(self, name: str) -> bool:
        return name in self.problem.graph.required_forward and self.problem.graph.by_name[name].role is Role.FORWARD

    def _storages(self, names: Iterable[str]) -> set[int]:
        storages = (self.facts.values[self.facts.position[name]].storage for name in names)
        return {storage for storage in storages if storage >= 0}

    def _live_at(self, plan: Plan, during: ReplayedPass, peak: Moment) -> tuple[Live, ...]:
        found = self._live_graph_inputs()
        if not during.fused.kernels:
            return tuple(found)
        launch = during.live_bytes().index(peak.live_bytes)
        for number in live_at(during.fused, during.replayed, launch):
            buffer = during.fused.buffers[number]
            if buffer.storage not in self.graph_inputs:
                name, is_initial = self.facts.values[buffer.storage].name, number < during.fused.initial_buffers
                content = self.content(plan, name, buffer.is_output, peak.in_backward, is_initial)
                found.append(Live(name, buffer.nbytes, content))
        found += self._live_besides_buffers(during, launch)
        return tuple(sorted(found, key=lambda live: -live.nbytes))

    def _live_graph_inputs(self) -> list[Live]:
        parameters = self.problem.graph.parameter_bytes
        inputs = self.problem.graph.graph_input_bytes - parameters
        found = [Live("parameters", parameters, Content.PARAMETER), Live("inputs", inputs, Content.INPUT)]
        return [live for live in found if live.nbytes]

    def _live_besides_buffers(self, during: ReplayedPass, launch: int) -> list[Live]:
        outputs = during.held_bytes - self.problem.static_bytes
        workspaces = [
            Live(self.facts.values[kernel.operation].name, kernel.workspace_bytes, Content.WORKSPACE)
            for kernel in during.fused.kernels
            if kernel.launch == launch
        ]
        buffers = during.replayed.live_bytes[launch]
        copied = during.replayed.copied_bytes if launch == len(during.replayed.live_bytes) - 1 else 0
        found = [
            Live("forward outputs", outputs, Content.OUTPUT),
            Live("copies and scalars", self.problem.extra_static_bytes, Content.WORKSPACE),
            *workspaces,
            Live("copy of a gradient", copied, Content.WORKSPACE),
            Live("margin", during.with_margin(buffers) - buffers, Content.MARGIN),
        ]
        return [live for live in found if live.nbytes]


def _drop_oldest(cache: dict[Any, Any]) -> None:
    """Make space for one more entry."""
    if len(cache) >= _CACHED_REPLAYS:
        del cache[next(iter(cache))]
