"""What the ledger writes down: passes of calls, and phases.

A phase lasts from a forward that starts with no call in flight until no call is in flight again. Only calls of one
phase are in flight together, so a training step is planned phase by phase: one model with its loss is one phase, a step
of four accumulated micro-batches is the same phase four times, a GAN has two.

A phase that is not planned yet is recorded, pass by pass. Of a planned one only its peak is measured, because the
ledger is asked at every call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from autockpt.step.graph import StepGraph
from autockpt.step.variant import Variant

Key = int
"""Of a pass within its phase: of a forward the number of its graph, which is positive; see `backward_key`."""
Signature = tuple[Key, ...]
"""All passes of a phase."""
Sizes = tuple[int, ...]
"""The dynamic sizes of a call."""


def backward_key(call: int) -> Key:
    """By the position of its call in the phase."""
    return -1 - call


def is_forward(key: Key) -> bool:
    return key > 0


@dataclass(slots=True)
class PassRecord:
    """One forward or backward as it was observed. Bytes are all that was live on the device."""

    call: int
    """Its position among the calls of the phase."""
    in_backward: bool
    in_flight: tuple[int, ...]
    """The other calls in flight."""
    entry_bytes: int
    gap_bytes: int
    """The highest between the pass before and this one."""
    peak_bytes: int = 0
    tangent_bytes: int = 0
    """Gradients of its outputs that a backward is given."""
    outputs_alive: bool = False
    """At the start of a backward: somebody holds the outputs of its forward."""


class RecordedCall(NamedTuple):
    """A call in a recorded phase."""

    graph: StepGraph
    variant: Variant
    sizes: Sizes


class Phase:
    __slots__ = (
        "call_count",
        "calls",
        "entry_bytes",
        "has_backward",
        "is_recorded",
        "keys",
        "measured_bytes",
        "optimizer_bytes",
        "optimizer_steps",
        "passes",
        "spoiled",
    )

    def __init__(self, entry_bytes: int, optimizer_bytes: int, optimizer_steps: int, is_recorded: bool) -> None:
        self.entry_bytes = entry_bytes
        self.optimizer_bytes, self.optimizer_steps = optimizer_bytes, optimizer_steps
        """State that existed when it began, and steps that optimizers had run."""
        self.is_recorded = is_recorded
        if is_recorded:
            self.keys: list[Key] = []
            self.calls: list[RecordedCall] = []
            self.passes: list[PassRecord] = []
        self.call_count = 0
        self.has_backward = self.spoiled = False
        """Spoiled: it cannot be planned, because an exception ended it, or it has no end."""
        self.measured_bytes = 0
        """The peak of a phase that is not recorded."""

    def number_call(self) -> int:
        """The position of a call that begins now."""
        self.call_count += 1
        return self.call_count - 1

    @property
    def signature(self) -> Signature:
        return tuple(self.keys)

    @property
    def peak_bytes(self) -> int:
        """The highest from the start of the first pass to the end of the last."""
        if not self.is_recorded:
            return self.measured_bytes
        passes = max((one.peak_bytes for one in self.passes), default=0)
        return max(passes, max((one.gap_bytes for one in self.passes[1:]), default=0))
