"""Measures phases: pass by pass where a phase is not planned yet, else its peak alone."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from autockpt.machine import live_bytes, storage_bytes, storages_of
from autockpt.step.calls.call import GraphCall
from autockpt.step.calls.phase import Key, PassRecord, Phase, RecordedCall, Sizes, backward_key


class Recorder:
    def __init__(self, device: torch.device) -> None:
        self.counter = live_bytes(device)
        self._device = device
        self._highest_bytes = 0
        """Before what was compiled last, since the moment from which the counter's peak would have been taken."""
        self._has_compiled = False
        """Since garbage was collected last."""

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While something is compiled: what that allocates for a moment is no part of the step."""
        self._highest_bytes = self._highest()
        try:
            yield
        finally:
            self.counter.restart_peak()
            self._has_compiled = True

    def _highest(self) -> int:
        return max(self._highest_bytes, self.counter.restart_peak())

    def begin_unrecorded(self) -> None:
        """A phase starts of which only the peak is measured."""
        self.counter.restart_peak()
        self._highest_bytes = 0

    def end_unrecorded(self, phase: Phase) -> None:
        """This may be the end of that phase."""
        phase.measured_bytes = self._highest_bytes = self._highest()

    def begin_forward(self, call: GraphCall, sizes: Sizes, in_flight: Collection[int]) -> None:
        call.phase.calls.append(RecordedCall(call.graph, call.variant, sizes))
        call.record = self._begin(call, call.graph.number, False, in_flight)

    def begin_backward(self, call: GraphCall, in_flight: Collection[int], tangents: Sequence[Any]) -> None:
        if self._has_compiled:
            self._collect()
        record = call.record = self._begin(call, backward_key(call.number), True, in_flight)
        record.tangent_bytes = sum(storage_bytes(tangents, self._device).values())
        record.outputs_alive = any(output() is not None for output in call.outputs)

    def _collect(self) -> None:
        """Free what Dynamo left in reference cycles: tensors of the step it was called in, that no later step holds."""
        self._has_compiled = False
        highest, before = self._highest(), self.counter.now()
        gc.collect()
        self.counter.restart_peak()
        self._highest_bytes = highest - (before - self.counter.now())

    def _begin(self, call: GraphCall, key: Key, in_backward: bool, in_flight: Collection[int]) -> PassRecord:
        gap_bytes, self._highest_bytes = self._highest(), 0
        others = tuple(number for number in in_flight if number != call.number)
        record = PassRecord(call.number, in_backward, others, self.counter.now(), gap_bytes)
        call.phase.keys.append(key)
        call.phase.passes.append(record)
        return record

    def end_pass(self, record: PassRecord) -> None:
        record.peak_bytes = self.counter.restart_peak()

    def hold_outputs(self, call: GraphCall, outputs: Sequence[Any]) -> None:
        """To see at the start of the backward whether somebody else holds the outputs of the forward."""
        call.outputs = [weakref.ref(storage) for storage in storages_of(outputs, self._device)]
