"""The ledger of one device: which calls are in flight, what was live around them, and which variant the next one runs.

Every forward of a compiled graph asks the ledger for a variant and reports to it when it is done; its autograd node
reports when the backward starts and ends, and when it dies without one. A phase that is known runs its planned
variants; another one runs the first variant of each graph, is observed, and is planned before a later phase starts.
"""

from __future__ import annotations

import logging
import warnings
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any

import torch

from autockpt.errors import AutockptError
from autockpt.inductor import backward_keeps_graph, find_call_node, mark_call_node
from autockpt.machine import live_bytes, storage_of
from autockpt.step.graph import StepGraph, Variant
from autockpt.step.optimizers import OptimizerStates
from autockpt.step.phase import GraphCall, Key, PassRecord, Phase, Route
from autockpt.step.planner import StepPlanner

log = logging.getLogger("autockpt")
_MOST_PASSES = 20_000
"""Of one phase. Calls that are in flight then are forgotten: their outputs are stored somewhere, for no backward."""


@cache
def ledger_of(device: torch.device) -> Ledger:
    return Ledger(device)


class Ledger:
    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.counter = live_bytes(device)
        self.optimizers = OptimizerStates(device)
        self.root = Route()
        """The phases that are planned."""
        self.planner = StepPlanner(self)
        self.is_open = True
        """Not after a failure of ours: every graph then runs its first variant."""
        self._lock = RLock()
        self._phase: Phase | None = None
        self._route: Route | None = None
        self._in_flight: dict[int, GraphCall] = {}
        self._dropped: deque[GraphCall] = deque()
        self._gap_bytes = 0

    @property
    def calls_in_flight(self) -> int:
        with self._lock:
            self._drain()
            return len(self._in_flight)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While something is compiled: what that allocates for a moment is no part of the step."""
        self._gap_bytes = max(self._gap_bytes, self.counter.restart_peak())
        try:
            yield
        finally:
            self.counter.restart_peak()

    def begin(self, graph: StepGraph, key: Key) -> GraphCall | None:
        """A forward is about to run; the call says by which variant. None where the ledger is closed."""
        with self._lock:
            try:
                return self._begin(graph, key) if self.is_open else None
            except AutockptError:
                raise
            except Exception as error:
                self.close(error)
                return None

    def _begin(self, graph: StepGraph, key: Key) -> GraphCall:
        self._drain()
        if self._phase is None or not self._in_flight:
            self._start(graph, key)
        phase = self._phase
        assert phase is not None
        variant = self._advance(phase, key, graph)
        gap_bytes, self._gap_bytes = max(self._gap_bytes, self.counter.restart_peak()), 0
        record = PassRecord(len(phase.calls), False, tuple(self._in_flight), self.counter.now(), gap_bytes)
        call = GraphCall(
            phase, record.call, graph, variant or self.planner.unplanned(graph, bool(self._in_flight)), record
        )
        phase.calls.append(call)
        phase.passes.append(record)
        if len(phase.passes) > _MOST_PASSES:
            phase.spoiled = True
            self._in_flight.clear()
        self._in_flight[call.number] = call
        return call

    def _start(self, graph: StepGraph, key: Key) -> None:
        self._finish()
        entry_bytes = self.counter.now()
        self.planner.before_phase(graph, key, entry_bytes)
        self._phase = Phase(entry_bytes, self.optimizers.existing_bytes, self.optimizers.steps)
        self._route = self.root

    def _advance(self, phase: Phase, key: Key, graph: StepGraph | None) -> Variant | None:
        """Follow the tree of planned phases by one pass; the variant that it has for a forward."""
        phase.keys.append(key)
        if self._route is not None:
            self._route = self._route.following.get(key)
        return self._route.variant if self._route is not None else None

    def end_forward(self, call: GraphCall, outputs: Sequence[Any]) -> None:
        try:
            call.record.peak_bytes = self.counter.restart_peak()
            node = find_call_node(outputs)
            if node is None:
                self.abandon(call, spoiled=False)
                return
            if self._route is None:
                storages = (storage_of(o, self.device) for o in outputs if isinstance(o, torch.Tensor))
                call.outputs = [weakref.ref(storage) for storage in storages if storage is not None]
            mark_call_node(node, _Token(self, call))
            node.register_prehook(_Before(self, call))
            node.register_hook(_After(self, call))
        except Exception as error:
            self.close(error)

    def abandon(self, call: GraphCall, spoiled: bool) -> None:
        """A call that is not in flight after its forward: it failed, or nothing in it needs a gradient."""
        with self._lock:
            call.ended = True
            call.phase.spoiled |= spoiled
            if call.phase is self._phase:
                self._in_flight.pop(call.number, None)

    def begin_backward(self, call: GraphCall, tangents: Sequence[Any]) -> None:
        with self._lock:
            self._drain()
            phase = call.phase
            if phase is not self._phase:
                return
            others = tuple(number for number in self._in_flight if number != call.number)
            gap_bytes = self.counter.restart_peak()
            record = call.record = PassRecord(call.number, True, others, self.counter.now(), gap_bytes)
            phase.passes.append(record)
            self._advance(phase, (call.number,), None)
            if self._route is None:
                given = (storage_of(t, self.device) for t in tangents if isinstance(t, torch.Tensor))
                record.tangent_bytes = sum({s._cdata: s.nbytes() for s in given if s is not None}.values())
                record.outputs_alive = any(output() is not None for output in call.outputs)

    def end_backward(self, call: GraphCall) -> None:
        with self._lock:
            if call.phase is not self._phase:
                return
            call.record.peak_bytes = self.counter.restart_peak()
            if backward_keeps_graph():
                return
            call.ended = True
            self._in_flight.pop(call.number, None)
            if not self._in_flight:
                self._finish()

    def drop(self, call: GraphCall) -> None:
        """Its node died. Called by the garbage collector, so at any time: it is only noted."""
        if not call.ended:
            self._dropped.append(call)

    def _drain(self) -> None:
        while self._dropped:
            call = self._dropped.popleft()
            call.ended = True
            if call.phase is self._phase:
                self._in_flight.pop(call.number, None)

    def _finish(self) -> None:
        """No call is in flight any more."""
        phase, route, self._phase, self._route = self._phase, self._route, None, None
        if phase is not None and not phase.spoiled:
            self.planner.after_phase(phase, route is not None and route.is_end)

    def close(self, error: Exception) -> None:
        """Something of ours failed: training goes on, every graph by its first variant."""
        if not self.is_open:
            return
        self.is_open, self._phase, self._in_flight = False, None, {}
        self.root.following.clear()
        log.debug("the step could not be planned", exc_info=error)
        warnings.warn(
            f"autockpt could not plan the step as a whole; every graph runs the plan it was compiled with, and several "
            f"of them may exceed the budget. Reason: {type(error).__name__}: {error}. Please report it with the output "
            f'of TORCH_LOGS="+autockpt".',
            RuntimeWarning,
            stacklevel=2,
        )


class _Token:
    """Lives in the autograd node of a call."""

    __slots__ = ("call", "ledger")

    def __init__(self, ledger: Ledger, call: GraphCall) -> None:
        self.ledger, self.call = ledger, call

    def __del__(self) -> None:
        self.ledger.drop(self.call)


class _Before:
    """A hook of that node, before its backward. What goes wrong here must not end the backward."""

    __slots__ = ("call", "ledger")

    def __init__(self, ledger: Ledger, call: GraphCall) -> None:
        self.ledger, self.call = ledger, call

    def __call__(self, tangents: Sequence[Any]) -> None:
        try:
            self.ledger.begin_backward(self.call, tangents)
        except Exception as error:
            self.ledger.close(error)


class _After(_Before):
    """A hook of that node, after its backward."""

    __slots__ = ()

    def __call__(self, *_: Any) -> None:
        try:
            self.ledger.end_backward(self.call)
        except Exception as error:
            self.ledger.close(error)
