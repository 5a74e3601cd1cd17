"""What the ledger writes down: calls, their passes, and phases.

A phase lasts from a forward that starts with no call in flight until no call is in flight again. Only calls of one
phase are in flight together, so a training step is planned phase by phase: one model with its loss is one phase, a step
of four accumulated micro-batches is the same phase four times, a GAN has two.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

from autockpt.step.graph import StepGraph, Variant

Key = tuple[Any, ...]
"""Of a pass within its phase: (graph, dynamic sizes) of a forward, (call,) of a backward."""
Signature = tuple[Key, ...]
"""All passes of a phase."""


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


@dataclass(slots=True)
class GraphCall:
    """One forward of a graph, in flight until its backward is done or its autograd node dies."""

    phase: Phase
    number: int
    graph: StepGraph
    variant: Variant
    record: PassRecord
    """Of the pass that runs now or ran last."""
    outputs: list[weakref.ref[Any]] = field(default_factory=list)
    ended: bool = False


@dataclass(slots=True)
class Phase:
    entry_bytes: int
    optimizer_bytes: int
    """State that existed when it began."""
    optimizer_steps: int
    keys: list[Key] = field(default_factory=list)
    calls: list[GraphCall] = field(default_factory=list)
    passes: list[PassRecord] = field(default_factory=list)
    spoiled: bool = False
    """It cannot be planned: an exception ended it, or it has no end."""

    @property
    def signature(self) -> Signature:
        return tuple(self.keys)

    @property
    def peak_bytes(self) -> int:
        """The highest from the start of the first pass to the end of the last."""
        passes = max((one.peak_bytes for one in self.passes), default=0)
        return max(passes, max((one.gap_bytes for one in self.passes[1:]), default=0))


class Route:
    """A node in the tree of planned phases: what may come next, and the variant that a forward runs here."""

    __slots__ = ("following", "is_end", "variant")

    def __init__(self) -> None:
        self.following: dict[Key, Route] = {}
        self.variant: Variant | None = None
        self.is_end = False

    def add(self, signature: Signature, variants: list[Variant]) -> None:
        """Enter a phase, from the root. Where two begin alike, a call runs the variant that holds less."""
        route, rest = self, iter(variants)
        for key in signature:
            route = route.following.setdefault(key, Route())
            if is_forward(key):
                variant = next(rest)
                if route.variant is None or variant.option.held_bytes < route.variant.option.held_bytes:
                    route.variant = variant
        route.is_end = True

    def remove(self, signature: Signature) -> None:
        """Forget every phase that begins as this one does."""
        self.following.pop(signature[0], None)

    def without(self, graphs: set[int]) -> None:
        """Forget phases in which any of these graphs is called."""
        pending = [self]
        while pending:
            route = pending.pop()
            for key in [key for key in route.following if is_forward(key) and key[0] in graphs]:
                del route.following[key]
            pending.extend(route.following.values())


def is_forward(key: Key) -> bool:
    return len(key) > 1
