"""What is asked of a planner, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from autockpt.passes.joint import JointGraph, Kind, Role, Trait


class Lowering(Enum):
    """Who turns the two graphs into kernels; it decides which values ever become bytes."""

    INDUCTOR = "inductor"
    EAGER = "eager"


@dataclass(frozen=True)
class Problem:
    graph: JointGraph
    seconds: Mapping[str, float]
    """What one more run of each value costs."""
    pinned: Mapping[str, str]
    """Values that cannot be recomputed, each with its reason."""
    lowering: Lowering = Lowering.INDUCTOR
    workspace: Mapping[str, int] | None = None
    """Bytes that an operation allocates and frees inside itself."""
    seconds_per_byte: float = 0.0
    """Of memory traffic: what keeping a byte costs even when memory is free."""

    @cached_property
    def unkeepable(self) -> frozenset[str]:
        """Values that may not cross from forward to backward: views, several results at once, user tags."""
        return frozenset(
            value.name
            for value in self.graph.values
            if value.role is Role.FORWARD
            and value.kind is not Kind.SYMBOL
            and (not value.owns_bytes or (Trait.MUST_RECOMPUTE in value.traits and value.name not in self.pinned))
        )


@dataclass(frozen=True)
class Plan:
    """Complete: how long each value lives follows from it."""

    kept: frozenset[str]
    """Forward values that cross into the backward. Parameters and inputs cross by themselves."""
    backward: tuple[str, ...]
    """The backward in order. Names of forward values are recomputations, and may come more than once."""


class Outcome(Enum):
    FITS = "The plan fits the budget and is the fastest that was found."
    NO_BUDGET = "No budget was set: this is the fastest plan that was found."
    OVER_BUDGET = "No plan that was found fits the budget; this is the lowest peak."
