"""The ledger of one device: which calls are in flight, what was live around them, and which variant the next one runs.

Every forward of a compiled graph asks the ledger for a variant and reports to it when it is done; its autograd node
reports when the backward starts and ends, and when it dies without one. A phase that is known runs its planned
variants; another one runs the first variant of each graph, is recorded, and is planned before a later phase starts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cache
from threading import RLock
from typing import Any

import torch

from autockpt.errors import AutockptError
from autockpt.inductor import backward_keeps_graph, find_call_node, observe_backward
from autockpt.step.calls.call import GraphCall
from autockpt.step.calls.messages import warn_unplanned_step
from autockpt.step.calls.out_of_memory import explain
from autockpt.step.calls.phase import Phase, Sizes, backward_key
from autockpt.step.calls.recorder import Recorder
from autockpt.step.calls.routes import Follower
from autockpt.step.graph import StepGraph
from autockpt.step.optimizers import OptimizerStates
from autockpt.step.planner import StepPlanner
from autockpt.step.stored.steps import StoredSteps

_MOST_CALLS = 10_000
"""Of one phase. Calls that are in flight then are forgotten: their outputs are stored somewhere, for no backward."""
_RECORDED_AFTER_CHANGE = 64
"""Phases that are recorded from their start after one that began like a planned phase and went on differently."""


@cache
def ledger_of(device: torch.device) -> Ledger:
    return Ledger(device)


class Ledger:
    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.recorder = Recorder(device)
        self.optimizers = OptimizerStates(device)
        self._follower = Follower()
        self.root = self._follower.root
        """The phases that are planned."""
        self.planner = StepPlanner(self)
        self.stored = StoredSteps(self)
        self.is_open = True
        """Not after a failure of ours: every graph then runs its first variant."""
        self._lock = RLock()
        self._phase: Phase | None = None
        self._in_flight: dict[int, None] = {}
        """Numbers of calls of the current phase, in order."""
        self._dropped: deque[tuple[Phase, int]] = deque()
        self._phases_to_record = 0

    @property
    def calls_in_flight(self) -> int:
        """Asked while Dynamo compiles, so under its compile lock, which a thread that plans waits for while it holds
        ours: waiting for ours here would be a deadlock."""
        if self._lock.acquire(blocking=False):
            try:
                self._drain()
            finally:
                self._lock.release()
        return len(self._in_flight)

    def begin(self, graph: StepGraph, sizes: Sizes) -> GraphCall | None:
        """A forward is about to run; the call says by which variant. None where the ledger is closed."""
        with self._lock:
            try:
                return self._begin(graph, sizes) if self.is_open else None
            except AutockptError:
                raise
            except Exception as error:
                self.close(error)
                return None

    def _begin(self, graph: StepGraph, sizes: Sizes) -> GraphCall:
        self._drain()
        phase = self._phase
        if phase is None or not self._in_flight:
            phase = self._start(graph, sizes)
        route = self._follower.advance(graph.number, sizes)
        variant = route.variant if route is not None else None
        if variant is None:
            variant = self.planner.compile_first(graph, route, bool(self._in_flight))
        number = phase.number_call()
        call = GraphCall(self, phase, number, graph, variant)
        if phase.is_recorded:
            self.recorder.begin_forward(call, sizes, self._in_flight)
        if number > _MOST_CALLS:
            phase.spoiled = True
            self._in_flight.clear()
        self._in_flight[number] = None
        return call

    def _start(self, graph: StepGraph, sizes: Sizes) -> Phase:
        self._finish()
        entry_bytes = self.recorder.counter.now()
        self.planner.before_phase(graph, entry_bytes)
        optimizers, is_planned = self.optimizers, self._follower.start(graph.number, sizes)
        is_recorded = not is_planned or self._phases_to_record > 0
        phase = self._phase = Phase(entry_bytes, optimizers.existing_bytes, optimizers.steps, is_recorded)
        self._phases_to_record -= self._phases_to_record > 0
        if not phase.is_recorded:
            self.recorder.begin_unrecorded()
        return phase

    def end_forward(self, call: GraphCall, outputs: Sequence[Any]) -> None:
        try:
            if call.record is not None:
                self.recorder.end_pass(call.record)
            node = find_call_node(outputs)
            if node is None:
                self.abandon(call, spoiled=False)
                return
            if call.record is not None:
                self.recorder.hold_outputs(call, outputs)
            observe_backward(node, call)
        except Exception as error:
            self.close(error)

    def abandon(self, call: GraphCall, spoiled: bool) -> None:
        """A call that is not in flight any more: a pass failed, or nothing in it needs a gradient."""
        with self._lock:
            call.ended = True
            call.phase.spoiled |= spoiled
            if call.phase is self._phase:
                self._in_flight.pop(call.number, None)

    def fail(self, call: GraphCall, error: BaseException) -> None:
        """A pass of this call raised."""
        if isinstance(error, torch.OutOfMemoryError):
            try:
                explain(error, self, call)
            except Exception as failure:
                self.close(failure)
        self.abandon(call, spoiled=True)

    def begin_backward(self, call: GraphCall, tangents: Sequence[Any]) -> None:
        with self._lock:
            self._drain()
            phase = call.phase
            if phase is not self._phase:
                return
            phase.has_backward = True
            self._follower.advance(backward_key(call.number))
            if phase.is_recorded:
                self.recorder.begin_backward(call, self._in_flight, tangents)

    def end_backward(self, call: GraphCall) -> None:
        with self._lock:
            phase = call.phase
            if phase is not self._phase:
                return
            if call.record is not None:
                self.recorder.end_pass(call.record)
            elif self._follower.ended is not None:
                self.recorder.end_unrecorded(phase)
            if backward_keeps_graph():
                return
            call.ended = True
            self._in_flight.pop(call.number, None)
            if not self._in_flight:
                self._finish()

    def drop(self, phase: Phase, number: int) -> None:
        """The node of a call died. Called by the garbage collector, so at any time: it is only noted."""
        self._dropped.append((phase, number))

    def _drain(self) -> None:
        while self._dropped:
            phase, number = self._dropped.popleft()
            if phase is self._phase:
                self._in_flight.pop(number, None)

    def _finish(self) -> None:
        """No call is in flight any more."""
        phase, self._phase = self._phase, None
        signature = self._follower.leave()
        if phase is None or phase.spoiled:
            return
        if phase.is_recorded:
            self.planner.after_phase(phase, signature is not None)
        elif signature is not None:
            self.planner.after_known_phase(phase, signature)
        if signature is None and phase.has_backward:
            self._phases_to_record = 0 if phase.is_recorded else _RECORDED_AFTER_CHANGE

    def record_next_phase(self) -> None:
        """A phase ran as an earlier process had planned it; its passes are not known yet."""
        self._phases_to_record = max(self._phases_to_record, 1)

    def record_pipeline(self) -> None:
        """A stage of a pipeline tries one call to learn its shapes, and its step begins like that one."""
        self._phases_to_record = _RECORDED_AFTER_CHANGE

    def close(self, error: Exception) -> None:
        """Something of ours failed: training goes on, every graph by its first variant."""
        if not self.is_open:
            return
        self.is_open, self._phase, self._in_flight = False, None, {}
        self.root.following.clear()
        warn_unplanned_step(error)
