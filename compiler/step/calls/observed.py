"""Observed phases as a step problem: outside bytes of every pass, from what was live and from what our calls held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from autockpt.passes.step import PlanOption, PlanTable, StepCall
from autockpt.step.calls.phase import PassRecord, Phase, Signature, Sizes
from autockpt.step.graph import StepGraph

EAGER = "between calls"
"""The name under which the step problem has moments at which no compiled graph runs."""
EAGER_TABLE = PlanTable((PlanOption(0, 0, 0, 0.0),))


@dataclass
class Observed:
    """A phase that was observed from its beginning to its end, and how often it has come since."""

    signature: Signature
    graphs: list[StepGraph]
    """Of its calls."""
    options: list[PlanOption]
    """That its calls ran with."""
    sizes: list[Sizes]
    """Of its calls, the dynamic ones, each the largest so far."""
    passes: list[PassRecord]
    observed_at_bytes: int
    """Live when it began, as it was observed."""
    entry_bytes: int
    """Live when it begins, at most, without optimizer state."""
    optimizer_steps: int = 0
    """That optimizers had run when it came last."""
    seen: int = 0
    excess_bytes: int = 0
    """By which a planned run of it was over its budget."""
    corrections: int = 0

    @staticmethod
    def of(phase: Phase) -> Observed:
        return Observed(
            signature=phase.signature,
            graphs=[call.graph for call in phase.calls],
            options=[call.variant.option for call in phase.calls],
            sizes=[call.sizes for call in phase.calls],
            passes=phase.passes,
            observed_at_bytes=phase.entry_bytes,
            entry_bytes=phase.entry_bytes - phase.optimizer_bytes,
        )

    @property
    def budget_bytes(self) -> int | None:
        """The least of the budgets of its graphs; None where all are fractions."""
        return min((graph.budget_bytes for graph in self.graphs if graph.budget_bytes is not None), default=None)

    @property
    def peak_bytes(self) -> int:
        """As it was observed."""
        return max(self.gap_bytes, *(one.peak_bytes for one in self.passes))

    def grow(self, phase: Phase) -> None:
        """It came with a dynamic size that is larger than before. What needs more bytes is what is planned for."""
        now = Observed.of(phase)
        if now.peak_bytes - now.observed_at_bytes >= self.peak_bytes - self.observed_at_bytes:
            self.options, self.passes, self.observed_at_bytes = now.options, now.passes, now.observed_at_bytes
        self.sizes = [tuple(map(max, *pair)) for pair in zip(self.sizes, now.sizes, strict=True)]

    def at_sizes(self) -> Observed:
        """With options for the dynamic sizes that it ran with; those of a graph are for the sizes that were traced."""
        calls = zip(self.graphs, self.options, self.sizes, strict=True)
        return replace(self, options=[graph.option_at(option, sizes) for graph, option, sizes in calls])

    def ran(self, phase: Phase) -> None:
        self.seen += 1
        self.optimizer_steps = phase.optimizer_steps
        self.begins_at(phase.entry_bytes, phase.optimizer_bytes)

    def begins_at(self, entry_bytes: int, optimizer_bytes: int) -> None:
        """So much was live when it began, of it so much optimizer state."""
        self.entry_bytes = max(self.entry_bytes, entry_bytes - optimizer_bytes)

    @property
    def gap_bytes(self) -> int:
        """The highest between its passes, as it was observed."""
        return max((one.gap_bytes for one in self.passes[1:]), default=0)

    @property
    def eager_bytes(self) -> int:
        """Of a phase with one call: by which it was above what its plan needs, for a loss outside of the graph."""
        return max(self.peak_bytes - self.observed_at_bytes - self.options[0].pass_bytes, 0) + self.excess_bytes

    def _shift(self, optimizer_bytes: int) -> int:
        """From the bytes that were observed to those that are to be planned for."""
        return self.entry_bytes + optimizer_bytes - self.observed_at_bytes + self.excess_bytes

    def calls(self, first: int, optimizer_bytes: int) -> Iterator[StepCall]:
        """Its calls in a step problem, numbered from `first`, with so much optimizer state."""
        shift = self._shift(optimizer_bytes)
        forwards = {one.call: one for one in self.passes if not one.in_backward}
        backwards: dict[int, list[PassRecord]] = {}
        for one in self.passes:
            if one.in_backward:
                backwards.setdefault(one.call, []).append(one)
        in_flight_later = {other for one in self.passes for other in one.in_flight}
        for number, graph in enumerate(self.graphs):
            forward, later = forwards[number], backwards.get(number, [])
            alive = any(one.outputs_alive for one in later)
            held = [self._backward_outside(one, alive) + shift for one in later]
            if not held and number in in_flight_later:
                # It was never given a backward, but others ran beside what it held.
                held = [0]
            last = max(later, key=lambda one: len(one.in_flight), default=forward)
            yield StepCall(
                graph=graph.name,
                forward_outside_bytes=self._forward_outside(forward) + shift,
                backward_outside_bytes=max(held, default=None),
                in_flight_forward=tuple(first + other for other in forward.in_flight),
                in_flight_backward=tuple(first + other for other in last.in_flight) if later else (),
                outputs_held=alive,
                outputs_held_in_backward=alive,
            )

    def gaps(self, first: int, optimizer_bytes: int) -> Iterator[StepCall]:
        """Moments between the passes at which more was live than when the next pass began."""
        shift = self._shift(optimizer_bytes)
        for one in self.passes:
            beside = (*one.in_flight, one.call) if one.in_backward else one.in_flight
            if beside and one.gap_bytes > one.entry_bytes:
                outside = one.gap_bytes - self._held(beside) + shift
                yield StepCall(EAGER, outside, None, tuple(first + other for other in beside))

    def _forward_outside(self, one: PassRecord) -> int:
        own, others = self.options[one.call].forward_bytes, self._held(one.in_flight)
        return max(one.entry_bytes - others, one.peak_bytes - others - own)

    def _backward_outside(self, one: PassRecord, alive: bool) -> int:
        option, others = self.options[one.call], self._held(one.in_flight)
        saved_outputs = 0 if alive else option.saved_output_bytes
        before = one.entry_bytes - others - option.saved_bytes - saved_outputs - one.tangent_bytes
        own = option.backward_bytes - (option.saved_output_bytes if alive else 0)
        return max(before, one.peak_bytes - others - own)

    def _held(self, calls: Sequence[int]) -> int:
        """By these calls, in the phase as it was observed."""
        return sum(self._held_by(number) for number in calls)

    def _held_by(self, number: int) -> int:
        option = self.options[number]
        alive = any(one.outputs_alive for one in self.passes if one.call == number)
        return option.saved_bytes if alive else option.held_bytes
