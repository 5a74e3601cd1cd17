"""One call of a graph: from its forward until its backward is done, or until its autograd node dies without one."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from autockpt.step.calls.phase import PassRecord, Phase
from autockpt.step.graph import StepGraph
from autockpt.step.variant import Variant

if TYPE_CHECKING:
    from autockpt.step.calls.ledger import Ledger


class GraphCall:
    """Is held by its autograd node alone. It reports the passes of the call, and its own end, to the ledger."""

    __slots__ = ("ended", "graph", "in_backward", "ledger", "number", "outputs", "phase", "record", "variant")

    def __init__(self, ledger: Ledger, phase: Phase, number: int, graph: StepGraph, variant: Variant) -> None:
        self.ledger, self.phase, self.number, self.graph, self.variant = ledger, phase, number, graph, variant
        self.ended = self.in_backward = False
        self.record: PassRecord | None = None
        """Of the pass that runs now or ran last, where the phase is recorded."""
        self.outputs: Sequence[weakref.ref[Any]] = ()

    def begin_backward(self, tangents: Sequence[Any]) -> None:
        self.in_backward = True
        # What goes wrong here must not end the backward.
        try:
            self.ledger.begin_backward(self, tangents)
        except Exception as error:
            self.ledger.close(error)

    def end_backward(self) -> None:
        try:
            self.ledger.end_backward(self)
        except Exception as error:
            self.ledger.close(error)

    def fail_backward(self, error: BaseException) -> None:
        self.ledger.fail(self, error)

    def __del__(self) -> None:
        if not self.ended:
            self.ledger.drop(self.phase, self.number)
