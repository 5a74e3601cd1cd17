"""The planning problem of one joint graph, and the plan, outcome and settings that go with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from autockpt.cost_models import DeviceProfile
from autockpt.passes.graph import JointGraph, Kind, Role, Trait, Value


class Lowering(Enum):
    """What turns the two graphs into kernels. It decides which values are written to memory at all."""

    INDUCTOR = "inductor"
    EAGER = "eager"


@dataclass(frozen=True, slots=True)
class InductorRules:
    """Rules of Inductor that differ between releases of torch. The defaults are those of 2.13."""

    max_operations_if_read_often: int | None = None
    """On the CPU: a loop with more operations is written to memory if more than five values read it."""
    backward_sets_layout: bool = False
    """Whether backwards of convolutions count, as convolutions do, when the memory layout of a pass is chosen."""
    gpu_numbers_repeat: bool = False
    """Whether every kernel on a GPU draws the same random numbers from the same seed."""

    def with_repeatable_gpu_numbers(self, repeat: bool) -> InductorRules:
        return replace(self, gpu_numbers_repeat=repeat)


@dataclass(frozen=True)
class Problem:
    """All that a planner may know: a joint graph, what each operation costs, and what may not be recomputed."""

    graph: JointGraph
    seconds: Mapping[str, float]
    """Of one run of each value's operation."""
    must_save: Mapping[str, str]
    """Values that may not be recomputed, each with its reason."""
    lowering: Lowering = Lowering.INDUCTOR
    workspace: Mapping[str, int] | None = None
    """Bytes that an operation allocates when it starts and frees before it ends."""
    extra_static_bytes: int = 0
    """Live all through the step although no value of the graph: copies that the lowering makes, scalars."""
    margin: float = 0.0
    """Share of the live bytes that a forecast adds for what it does not model."""
    device: DeviceProfile | None = None
    """The device that runs the step. Without one, a step takes the sum of its operations' seconds."""
    allowed: tuple[str, ...] = ()
    """Operators that the user vouched for."""
    rules: InductorRules = InductorRules()
    host_bytes: int = 0
    """How much may be offloaded to the host at any time; 0: nothing is."""
    tagged_offload: frozenset[str] = frozenset()
    """Must-save values that the user tagged to wait on the host."""

    @property
    def static_bytes(self) -> int:
        """Live all through the step, in every plan: parameters, inputs and `extra_static_bytes`."""
        return self.graph.graph_input_bytes + self.extra_static_bytes

    @cached_property
    def needed_by_backward(self) -> frozenset[str]:
        """Values that the backward reads, and those tagged MUST_SAVE that any of them is computed from.

        Only ancestors that the forward would not compute on its own account are searched for tags.
        """
        needed = set(self.graph.backward_reads)
        stack = list(needed)
        while stack:
            name = stack.pop()
            if name not in self.graph.required_forward:
                fresh = set(self.graph.by_name[name].inputs) - needed
                stack.extend(fresh)
                needed |= {source for source in fresh if Trait.MUST_SAVE in self.graph.by_name[source].traits}
        return frozenset(needed)

    @cached_property
    def unsavable(self) -> frozenset[str]:
        """Values that may not cross from forward to backward."""
        return frozenset(value.name for value in self.graph.values if self._is_unsavable(value))

    def _is_unsavable(self, value: Value) -> bool:
        if value.role is not Role.FORWARD or value.kind is Kind.SYMBOL:
            return False
        if not value.owns_bytes:
            # A view is saved as its base, a tuple of results as its parts.
            return True
        if value.name in self.must_save:
            return False
        if value.name in self.constants or value.traits & {Trait.MUST_RECOMPUTE, Trait.GATHERED_AGAIN}:
            return True
        return self._is_computed_late(value)

    @cached_property
    def constants(self) -> frozenset[str]:
        """Forward values computed from no tensor, which Inductor inlines into every loop that reads them.

        Saved, a constant is one more read of these loops. Loops with more than a few reads are written to memory
        where they would have been inlined, so reductions behind them run over other loops, and accumulate in another
        order: with two saved zeros, the gradient of a cross-entropy changed by 4e-9 and a ResNet's by 2e-5.
        """
        if self.lowering is not Lowering.INDUCTOR:
            return frozenset()
        return frozenset(value.name for value in self.graph.values if self._is_constant(value))

    def _is_constant(self, value: Value) -> bool:
        if value.role is not Role.FORWARD or value.kind is not Kind.POINTWISE or value.name in self.must_save:
            return False
        return all(self.graph.by_name[source].kind is Kind.SYMBOL for source in value.inputs)

    def _is_computed_late(self, value: Value) -> bool:
        """Whether only the backward uses a value, so that computing it there is the reference to be bitwise equal to.

        Computed in the forward, it would be part of another kernel, and the last bits of a transcendental function
        depend on the loop around it. Masks and indices are exact, but Inductor would write them in a loop of their own,
        against the layout of their inputs: those of a ResNet's ReLUs took a fifth of its step on the CPU. In eager mode
        they are kernels of their own anyway. A second result of an operation that the forward runs costs nothing.
        """
        made_by = self.graph.operation_of(value).name
        inexact = value.spec is not None and value.spec.is_floating
        return made_by not in self.graph.required_forward and (inexact or self.lowering is Lowering.INDUCTOR)


@dataclass(frozen=True, slots=True, order=True)
class Offload:
    """A saved value that waits on the host. Its copy out starts as soon as it is computed."""

    name: str
    release_after: str
    """The forward operation after which the copy is waited for and the value's memory is freed."""
    reload_before: int
    """Position in the plan's backward of the operation before which memory is allocated and the copy in starts. It is
    waited for before its first use."""


@dataclass(frozen=True)
class Plan:
    """What is saved and what the backward runs. The lifetime of every value follows from it."""

    saved: frozenset[str]
    """Forward values that cross into the backward. Parameters and inputs always do, and are not listed."""
    backward: tuple[str, ...]
    """Operations of the backward in order. Names of forward values are recomputations; one may occur repeatedly."""
    offloaded: tuple[Offload, ...] = ()
    """Of the saved values those that wait on the host."""

    @property
    def on_host(self) -> frozenset[str]:
        """Names of the offloaded values."""
        return frozenset(offload.name for offload in self.offloaded)


class Outcome(Enum):
    FASTEST = "The budget does not bind: this is the fastest plan that was found."
    FITS = "The fastest plan that was found within the budget."
    OVER_BUDGET = "No plan that was found fits the budget: this is the lowest peak."


UNCHECKED_MARGIN = 0.015
"""Where no dry run checks the forecast. Most peaks were within 1 % of their forecast, a few were forecast too low."""
CHECKED_MARGIN = 0.002
"""Where a dry run checks the compiled step, and a plan that does not fit is refined."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A cap on the peak. Exactly one field is set."""

    total_bytes: int | None = None
    """On everything that is live, parameters and inputs included."""
    free_bytes: int | None = None
    """On what comes on top of parameters and inputs."""
    fraction: float | None = None
    """From the minimum peak, 0.0, to the peak of the fastest plan, 1.0."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings of a planner."""

    budget: Budget
    device: DeviceProfile
    lowering: Lowering = Lowering.INDUCTOR
    threads: int = 1
    planner: str = "auto"
    solve_seconds: float = 60.0
    margin: float = UNCHECKED_MARGIN
    allowed: tuple[str, ...] = ()
    """Operators that the user vouched for (`allow_recompute`), sorted."""
    rules: InductorRules = InductorRules()
    host_bytes: int = 0
    """How much may be offloaded to the host at any time; 0: nothing is."""
