"""Options of one graph in a step: what a plan holds between its passes, what each pass needs, and how long it takes.

What each figure counts, so that nothing is counted twice when the calls of a step are added up:

saved_bytes          held from the end of the forward to the start of the backward: saved activations that are neither
                     graph inputs nor outputs, and the channels-last copies that the lowering makes.
saved_output_bytes   outputs of the forward that the backward reads. They are counted apart because somebody else may
                     hold them anyway: the next graph, eager autograd, a variable (`StepCall.outputs_held`).
forward_bytes        peak of the forward beyond its graph inputs: activations, saved ones included, outputs,
                     temporaries, workspaces, copies, margin.
backward_bytes       peak of the backward beyond its graph inputs: what was saved (outputs too), its tangents,
                     recomputed values, temporaries, workspaces, margin, and every gradient that it returns. Outputs
                     that were not saved are not in it.
host_bytes           what waits on the host between the passes: offloaded, and in none of the other figures.
seconds              of both passes as fused kernels, and of waiting for copies.

Graph inputs (parameters, buffers, inputs, tensors from other graphs) are outside bytes of a call, never an option's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from autockpt.passes.forecast import Candidate

CAPS = 7
"""Caps on each of two quantities, for which `PlanTable.of` takes the fastest option; at most CAPS² options are left."""


@dataclass(frozen=True)
class PlanOption:
    """One plan of a graph. The fields are explained at the top of the module."""

    saved_bytes: int
    forward_bytes: int
    backward_bytes: int
    seconds: float
    saved_output_bytes: int = 0
    host_bytes: int = 0
    candidate: Candidate | None = field(default=None, repr=False, compare=False)
    """The plan behind it; None in tests and for graphs that were not planned."""

    @property
    def pass_bytes(self) -> int:
        """The higher peak of its two passes."""
        return max(self.forward_bytes, self.backward_bytes)

    @property
    def held_bytes(self) -> int:
        """Between the passes, where nobody else holds the outputs."""
        return self.saved_bytes + self.saved_output_bytes

    @property
    def _costs(self) -> tuple[float, ...]:
        # Of equally fast plans the one that needs less of the host comes first.
        return (
            self.seconds,
            self.host_bytes,
            self.saved_bytes,
            self.held_bytes,
            self.forward_bytes,
            self.backward_bytes,
        )

    def dominates(self, other: PlanOption) -> bool:
        """Not worse in anything."""
        return all(own <= theirs for own, theirs in zip(self._costs, other._costs, strict=True))


@dataclass(frozen=True, slots=True)
class BoundPoint:
    """A corner of a lower bound: no plan that holds at most so many bytes between its passes takes fewer seconds.

    Between corners the bound is linear. Passes need at least `saved_bytes` and the table's `least_pass_bytes`.
    """

    saved_bytes: int
    seconds: float


@dataclass(frozen=True)
class PlanTable:
    """The options of one graph, fastest first. They depend on the graph alone, never on a budget."""

    options: tuple[PlanOption, ...]
    bound: tuple[BoundPoint, ...] = ()
    """The lower hull over all plans of the graph, most bytes first; empty where it is not known."""

    def __post_init__(self) -> None:
        if not self.options:
            raise ValueError("a table of plans needs at least one option")

    @staticmethod
    def of(options: Iterable[PlanOption], bound: Sequence[BoundPoint] = (), caps: int = CAPS) -> PlanTable:
        """Of these options those that no other dominates; of many, the fastest under each of `caps` × `caps` caps on
        saved bytes and on bytes during a pass."""
        return PlanTable(tuple(_thinned(_pareto(options), caps)), tuple(bound))

    @property
    def fastest(self) -> PlanOption:
        return self.options[0]


def _by_seconds(option: PlanOption) -> tuple[float, ...]:
    return option._costs


def _pareto(options: Iterable[PlanOption]) -> list[PlanOption]:
    """Those that no other dominates, fastest first, one of equals."""
    found: list[PlanOption] = []
    for option in sorted(options, key=_by_seconds):
        # Sorted by seconds first: what comes later never dominates what was found.
        if not any(known.dominates(option) for known in found):
            found.append(option)
    return found


def _thinned(options: list[PlanOption], caps: int) -> list[PlanOption]:
    if len(options) <= caps * caps:
        return options
    chosen: dict[int, PlanOption] = {}
    for saved_cap in _caps([option.held_bytes for option in options], caps):
        fitting = [option for option in options if option.held_bytes <= saved_cap]
        for pass_cap in _caps([option.pass_bytes for option in fitting], caps):
            best = next(option for option in fitting if option.pass_bytes <= pass_cap)
            chosen[id(best)] = best
    return sorted(chosen.values(), key=_by_seconds)


def _caps(values: Sequence[int], count: int) -> list[int]:
    """So many of these values, evenly spaced in their sorted order, the least and the greatest among them."""
    ordered = sorted(set(values))
    return sorted({ordered[round(number * (len(ordered) - 1) / (count - 1))] for number in range(count)})
