"""The step problem: one option for every call of every graph, such that the budget holds during every pass.

A call is one forward of one compiled graph and its backward; between the two it is in flight. During each pass

    outside bytes + bytes held by the other calls in flight + own bytes of the pass  <=  budget

and together the calls in flight have no more on the host than may be offloaded (`host_bytes`), which has to be checked
where a forward ends. Copies of different calls do not meet: a forward ends when its copies out are complete, and copies
in start in the backward.

Own and held bytes are those of the options (`options.py`), and outside bytes are everything else that is live:
parameters and buffers of the whole model, optimizer state, gradients that exist, inputs, tensors that cross from one
graph to another, tangents that wait for other calls, what eager autograd saved, other models. The graph inputs of the
call itself are among them; its own tangents are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from autockpt.passes.step.options import PlanOption, PlanTable

MAX_VARIANTS = 2
"""Compiled variants of one graph: the optimum of one knapsack constraint has at most one fractional item."""


@dataclass(frozen=True)
class StepCall:
    """One forward of a graph, and its backward. Calls are numbered by their position in the step."""

    graph: str
    forward_outside_bytes: int
    backward_outside_bytes: int | None
    """None for a call without a backward: an evaluation, a graph without gradients."""
    in_flight_forward: tuple[int, ...] = ()
    """The other calls that are in flight while its forward runs."""
    in_flight_backward: tuple[int, ...] = ()
    """The other calls that are in flight while its backward runs."""
    outputs_held: bool = False
    """Its outputs are in the outside bytes of all passes from its forward to its backward, these two not included."""
    outputs_held_in_backward: bool = False
    """Its outputs are in its own `backward_outside_bytes`, too."""

    def held_bytes(self, option: PlanOption) -> int:
        """What it adds to the passes of other calls while it is in flight."""
        return option.saved_bytes if self.outputs_held else option.held_bytes

    def backward_bytes(self, option: PlanOption) -> int:
        """What it adds to its own backward."""
        return option.backward_bytes - (option.saved_output_bytes if self.outputs_held_in_backward else 0)


@dataclass(frozen=True, slots=True)
class CallPeaks:
    """All live bytes at the worst moment of each pass of a call; 0 for a backward that does not run."""

    forward_bytes: int
    backward_bytes: int
    host_bytes: int = 0
    """What waits on the host at the end of its forward, of all calls in flight."""


@dataclass(frozen=True)
class StepProblem:
    tables: Mapping[str, PlanTable]
    """By the name of the graph."""
    calls: tuple[StepCall, ...]
    budget_bytes: int
    max_variants: int = MAX_VARIANTS
    """Different options that the calls of one graph may have."""
    host_bytes: int = 0
    """How much may be offloaded to the host at any time."""

    def __post_init__(self) -> None:
        for number, call in enumerate(self.calls):
            if call.graph not in self.tables:
                raise ValueError(f"call {number} is of graph {call.graph!r}, of which there is no table")
            for other in (*call.in_flight_forward, *call.in_flight_backward):
                if not 0 <= other < len(self.calls) or other == number:
                    raise ValueError(f"call {number} cannot have call {other} in flight beside it")
                if self.calls[other].backward_outside_bytes is None:
                    raise ValueError(f"call {other} has no backward and is never in flight")

    def at(self, budget_bytes: int) -> StepProblem:
        """The same step under another budget."""
        return replace(self, budget_bytes=budget_bytes)

    def options(self, number: int) -> tuple[PlanOption, ...]:
        return self.tables[self.calls[number].graph].options

    def chosen(self, choices: Sequence[int]) -> list[PlanOption]:
        """The option of each call, from its number in the table."""
        return [self.options(number)[choice] for number, choice in enumerate(choices)]

    def peaks(self, choices: Sequence[int]) -> tuple[CallPeaks, ...]:
        """Of each call, with these options."""
        options = self.chosen(choices)
        held = [call.held_bytes(option) for call, option in zip(self.calls, options, strict=True)]
        found = []
        for call, option in zip(self.calls, options, strict=True):
            forward = call.forward_outside_bytes + option.forward_bytes + sum(held[n] for n in call.in_flight_forward)
            backward = 0
            if call.backward_outside_bytes is not None:
                own = call.backward_outside_bytes + call.backward_bytes(option)
                backward = own + sum(held[n] for n in call.in_flight_backward)
            host_bytes = option.host_bytes + sum(options[n].host_bytes for n in call.in_flight_forward)
            found.append(CallPeaks(forward, backward, host_bytes))
        return tuple(found)

    def fits(self, choices: Sequence[int]) -> bool:
        """Within the budget, and within what may be offloaded."""
        return self.peak_bytes(choices) <= self.budget_bytes and self.most_on_host(choices) <= self.host_bytes

    def most_on_host(self, choices: Sequence[int]) -> int:
        """Bytes that wait on the host at once."""
        return max((peaks.host_bytes for peaks in self.peaks(choices)), default=0)

    def peak_bytes(self, choices: Sequence[int]) -> int:
        """Of the step."""
        return max((max(peaks.forward_bytes, peaks.backward_bytes) for peaks in self.peaks(choices)), default=0)

    def seconds(self, choices: Sequence[int]) -> float:
        """Of all calls."""
        return sum(option.seconds for option in self.chosen(choices))


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of a step as it was observed or traced, in the order in which passes run."""

    call: int
    in_backward: bool
    outside_bytes: int


def calls_from_passes(graphs: Sequence[str], passes: Iterable[Pass], held: Iterable[int] = ()) -> tuple[StepCall, ...]:
    """The calls of a step, from the graph of each call and from all passes in order.

    A call is in flight from its forward to its last backward; one without a backward never is. `held` are the calls
    whose outputs are counted in the outside bytes of the passes between their own two.
    """
    ordered = tuple(passes)
    outside = {(one.call, one.in_backward): one.outside_bytes for one in ordered}
    ends = {one.call: position for position, one in enumerate(ordered) if one.in_backward}
    starts = {one.call: position for position, one in enumerate(ordered) if not one.in_backward}
    held = frozenset(held)

    def beside(number: int, position: int) -> Iterator[int]:
        return (other for other, end in ends.items() if other != number and starts[other] < position < end)

    return tuple(
        StepCall(
            graph=graph,
            forward_outside_bytes=outside[number, False],
            backward_outside_bytes=outside.get((number, True)),
            in_flight_forward=tuple(sorted(beside(number, starts[number]))),
            in_flight_backward=tuple(sorted(beside(number, ends[number]))) if number in ends else (),
            outputs_held=number in held,
        )
        for number, graph in enumerate(graphs)
    )
