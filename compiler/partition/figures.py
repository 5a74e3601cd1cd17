"""The figures of a decision that remain when its graph is gone, and that a later process reads from disk."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from autockpt.partition.choice import Choice
from autockpt.passes.problem import Offload, Outcome, Plan
from autockpt.units import format_size

_Bytes = Annotated[int, Meta(ge=0, le=2**62)]
_Seconds = Annotated[float, Meta(ge=0, le=1e12)]
_Text = Annotated[str, Meta(max_length=1000)]


class Figures(Struct, frozen=True, forbid_unknown_fields=True):
    outcome: Literal["fastest", "fits", "over_budget"]
    budget_bytes: _Bytes
    peak_bytes: _Bytes
    """Of the forecast, parameters and inputs included."""
    compiled_bytes: _Bytes | None
    """Of the generated code, parameters and inputs included; None where it was not run dry."""
    needed_bytes: _Bytes
    """The budget that the plan needs, margin included."""
    graph_input_bytes: _Bytes
    saved_bytes: _Bytes
    step_seconds: _Seconds
    recompute_seconds: _Seconds
    planning_seconds: _Seconds
    method: _Text
    saved: tuple[_Text, ...]
    backward: tuple[_Text, ...]
    offloaded: tuple[tuple[_Text, _Text, _Bytes], ...] = ()
    """Name, release and reload of each, as in `autockpt.passes.problem.Offload`."""
    host_bytes: _Bytes = 0
    exposed_seconds: _Seconds = 0.0

    def __post_init__(self) -> None:
        # Terminals obey control characters.
        if not all(text.isprintable() for text in (self.method, *self.saved, *self.backward)):
            raise ValueError("Expected printable text")
        if len(set(self.saved)) < len(self.saved):
            raise ValueError("Expected each entry of `saved` once")

    @staticmethod
    def of(choice: Choice) -> Figures:
        decision = choice.decision
        graph, plan = decision.problem.graph, decision.plan
        return Figures(
            outcome=decision.outcome.name.lower(),  # type: ignore[arg-type]  # one of the three names
            budget_bytes=decision.budget_bytes,
            peak_bytes=decision.candidate.peak_bytes,
            compiled_bytes=decision.compiled_bytes,
            needed_bytes=decision.needed_bytes,
            graph_input_bytes=graph.graph_input_bytes,
            saved_bytes=sum(graph.bytes_of(name) for name in plan.saved - plan.on_host),
            step_seconds=float(decision.candidate.seconds),
            recompute_seconds=float(decision.candidate.recompute_seconds),
            planning_seconds=decision.planning_seconds,
            method=decision.candidate.method,
            saved=tuple(sorted(plan.saved)),
            backward=plan.backward,
            offloaded=tuple((o.name, o.release_after, o.reload_before) for o in plan.offloaded),
            host_bytes=decision.candidate.host_bytes,
            exposed_seconds=float(decision.candidate.exposed_seconds),
        )

    @property
    def plan(self) -> Plan:
        return Plan(frozenset(self.saved), self.backward, tuple(Offload(*fields) for fields in self.offloaded))

    @property
    def verdict(self) -> Outcome:
        return Outcome[self.outcome.upper()]

    def line(self, name: str) -> str:
        """One line for the log, of a plan that an earlier process stored."""
        compiled = f" (compiled: {format_size(self.compiled_bytes)})" if self.compiled_bytes is not None else ""
        share = self.recompute_seconds / self.step_seconds if self.step_seconds else 0.0
        return (
            f"{name}: peak {format_size(self.peak_bytes)}{compiled} of a budget of {format_size(self.budget_bytes)}, "
            f"{len(self.saved)} tensors ({format_size(self.saved_bytes)}) saved, {share:.1%} of the step recomputed "
            f"({self.method}), planned and compiled by an earlier process"
        )
