"""What is asked of a planner, and what it answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from autockpt.cost_models import DeviceProfile
from autockpt.passes.graph import JointGraph, Kind, Role, Trait, Value


class Lowering(Enum):
    """Who turns the two graphs into kernels; it decides which values ever become bytes."""

    INDUCTOR = "inductor"
    EAGER = "eager"


@dataclass(frozen=True)
class Problem:
    graph: JointGraph
    seconds: Mapping[str, float]
    """What one more run of each value costs."""
    must_save: Mapping[str, str]
    """Values that cannot be recomputed, each with its reason."""
    lowering: Lowering = Lowering.INDUCTOR
    workspace: Mapping[str, int] | None = None
    """Bytes that an operation allocates and frees inside itself."""
    standing_bytes: int = 0
    """Live through the whole step though no value of the graph: copies that the lowering makes."""
    margin: float = 0.0
    """Share of the live bytes that a forecast adds for what it does not see."""
    seconds_per_byte: float = 0.0
    """Of memory traffic: what keeping a byte costs even when memory is free."""
    device: DeviceProfile | None = None
    """What runs it; without one a step takes the sum of its operations' seconds."""

    @cached_property
    def save_seconds(self) -> Mapping[str, float]:
        """What keeping a value costs even when memory is free: it is written and read.

        What the forward writes anyway costs less than this, and plans that know it were a few hundredths faster at high
        budgets. But the backwards of these fuse otherwise: a ResNet's gradients were off by up to 2e-5 with them, and
        are plain Inductor's to the bit without.
        """
        free = self.graph.output_storages
        forward = (v for v in self.graph.values if v.role is Role.FORWARD and v.name not in free)
        return {v.name: self.seconds_per_byte * self.graph.bytes_of(v.name) for v in forward}

    def saving_seconds(self, saved: Iterable[str]) -> float:
        return sum(self.save_seconds.get(name, 0.0) for name in saved)

    @cached_property
    def demanded(self) -> frozenset[str]:
        """What must be at hand: what the backward reads, and what the user tagged MUST_SAVE and it is made from."""
        asked = set(self.graph.backward_reads)
        stack = list(asked)
        while stack:
            name = stack.pop()
            if name not in self.graph.required_forward:
                fresh = set(self.graph.by_name[name].inputs) - asked
                stack.extend(fresh)
                asked |= {source for source in fresh if Trait.MUST_SAVE in self.graph.by_name[source].traits}
        return frozenset(asked)

    @cached_property
    def unsavable(self) -> frozenset[str]:
        """Values that may not cross from forward to backward."""
        return frozenset(value.name for value in self.graph.values if self._is_unsavable(value))

    def _is_unsavable(self, value: Value) -> bool:
        if value.role is not Role.FORWARD or value.kind is Kind.SYMBOL:
            return False
        if not value.owns_bytes:
            # A view, saved as its base; or several results at once, saved one by one.
            return True
        if value.name in self.must_save:
            return False
        # What only the backward asks for is computed there. Brought forward it would be computed in another kernel,
        # and the last bits of a transcendental function depend on the loop around it. Masks and indices are exact, but
        # Inductor would need a loop of its own to write them, against the layout of what they are made from: those of
        # a ResNet's ReLUs took a fifth of its step on the CPU. Unfused, they are a kernel of their own anyway.
        # A second result of what the forward runs anyway is there already.
        made_by = value.inputs[0] if value.kind is Kind.PART else value.name
        inexact = value.spec is not None and value.spec.is_floating
        late = made_by not in self.graph.required_forward and (inexact or self.lowering is Lowering.INDUCTOR)
        return late or Trait.MUST_RECOMPUTE in value.traits


@dataclass(frozen=True)
class Plan:
    """Complete: how long each value lives follows from it."""

    saved: frozenset[str]
    """Forward values that cross into the backward. Parameters and inputs cross by themselves."""
    backward: tuple[str, ...]
    """The backward in order. Names of forward values are recomputations, and may come more than once."""


class Outcome(Enum):
    FASTEST = "The budget does not bind: this is the fastest plan that was found."
    FITS = "The fastest plan that was found within the budget."
    OVER_BUDGET = "No plan that was found fits the budget: this is the lowest peak."


UNCHECKED_MARGIN = 0.015
"""Where nothing but the forecast stands for the peak: most were within 1 % of it, a few were lower."""
CHECKED_MARGIN = 0.002
"""Where the lowered step is looked at before it is compiled, and planned again if it does not fit."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A cap on the peak. Exactly one of the three is set."""

    total_bytes: int | None = None
    """On everything that is live: parameters and inputs too."""
    free_bytes: int | None = None
    """On what comes on top of parameters and inputs, which are there already."""
    fraction: float | None = None
    """Between the lowest peak that was found, 0.0, and the peak of the fastest plan, 1.0."""


@dataclass(frozen=True, slots=True)
class Setup:
    budget: Budget
    device: DeviceProfile
    lowering: Lowering = Lowering.INDUCTOR
    threads: int = 1
    planner: str = "auto"
    solve_seconds: float = 10.0
    margin: float = UNCHECKED_MARGIN
