"""What was decided for the training step as a whole: `autockpt.step_decision()`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from autockpt.passes.problem import Outcome
from autockpt.passes.step import StepPlan
from autockpt.step.calls.observed import EAGER, Observed
from autockpt.step.variant import Variant
from autockpt.units import format_size

log = logging.getLogger("autockpt")
GRAPH_INPUTS, OTHERS = "parameters and inputs of the graph", "others"


@dataclass(frozen=True)
class CallDecision:
    """One call of one graph: its plan and the live bytes of the whole device at the worst moment of its passes."""

    phase: int
    """Calls of one phase may be in flight together."""
    graph: str
    """Of `autockpt.decisions()`: the variant that it runs."""
    method: str
    saved_bytes: int
    forward_bytes: int
    backward_bytes: int
    recompute_seconds: float
    host_bytes: int = 0
    """That wait on the host between its passes; none of them are among the others."""

    @staticmethod
    def of(phase: int, variant: Variant, entry_bytes: int) -> CallDecision:
        """Of a call that begins, in both passes, with so many bytes live."""
        option, made = variant.option, variant.made
        return CallDecision(
            phase=phase,
            graph=made.name,
            method=made.method,
            saved_bytes=option.held_bytes,
            forward_bytes=entry_bytes + option.forward_bytes,
            backward_bytes=entry_bytes + option.backward_bytes,
            recompute_seconds=made.recompute_seconds,
            host_bytes=option.host_bytes,
        )


@dataclass(frozen=True)
class StepDecision:
    device: str
    outcome: Outcome
    budget_bytes: int
    peak_bytes: int
    """Forecast for the whole step; everything that is live on the device is counted."""
    eager_bytes: int
    """The highest between the calls, where eager code runs; 0 where no moment between them is higher than its call."""
    outside_bytes: Mapping[str, int]
    """Live when the step began, by kind."""
    calls: tuple[CallDecision, ...]
    step_seconds: float
    """Of all calls, by the cost model."""
    planning_seconds: float
    """To plan and to compile."""

    @property
    def graphs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(call.graph for call in self.calls))

    @staticmethod
    def of(
        plan: StepPlan,
        routes: Sequence[tuple[Observed, Sequence[Variant]]],
        kinds: Mapping[str, int],
        device: torch.device,
        seconds: float,
    ) -> StepDecision:
        variants = [(number, variant) for number, (_, used) in enumerate(routes, 1) for variant in used]
        calls = tuple(
            replace(
                CallDecision.of(phase, variant, 0),
                forward_bytes=peaks.forward_bytes,
                backward_bytes=peaks.backward_bytes,
            )
            for (phase, variant), peaks in zip(variants, plan.call_peaks, strict=False)
        )
        eager = [p.forward_bytes for c, p in zip(plan.problem.calls, plan.call_peaks, strict=True) if c.graph == EAGER]
        return StepDecision(
            device=str(device),
            outcome=plan.outcome,
            budget_bytes=plan.budget_bytes,
            peak_bytes=plan.peak_bytes,
            eager_bytes=max(eager, default=0),
            outside_bytes=dict(kinds),
            calls=calls,
            step_seconds=plan.seconds,
            planning_seconds=seconds,
        )

    @staticmethod
    def alone(
        variant: Variant, entry_bytes: int, eager_bytes: int, budget_bytes: int | None, device: torch.device
    ) -> StepDecision:
        """Of a step that is one call of one graph, which starts with so many bytes live.

        `eager_bytes` are the highest while eager code runs, between the passes.
        """
        made = variant.made
        peak_bytes = max(entry_bytes + variant.option.pass_bytes, eager_bytes)
        inputs = made.graph_input_bytes
        return StepDecision(
            device=str(device),
            outcome=made.outcome,
            budget_bytes=peak_bytes if budget_bytes is None else budget_bytes,
            peak_bytes=peak_bytes,
            eager_bytes=eager_bytes,
            outside_bytes={GRAPH_INPUTS: inputs, OTHERS: max(entry_bytes - inputs, 0)},
            calls=(CallDecision.of(1, variant, entry_bytes),),
            step_seconds=made.step_seconds,
            planning_seconds=made.planning_seconds,
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"schema": 1, "outcome": self.outcome.name.lower()}

    def __str__(self) -> str:
        phases = len({call.phase for call in self.calls})
        saved = sum(call.saved_bytes for call in self.calls)
        again = sum(call.recompute_seconds for call in self.calls)
        host_bytes = sum(call.host_bytes for call in self.calls)
        offloaded = f"{format_size(host_bytes)} offloaded to the host, " if host_bytes else ""
        outside, share = sum(self.outside_bytes.values()), again / self.step_seconds if self.step_seconds else 0.0
        return (
            f"step: peak {format_size(self.peak_bytes)} of a budget of {format_size(self.budget_bytes)}, "
            f"{len(self.calls)} calls of {len(self.graphs)} graphs in {phases} phases, {format_size(outside)} live "
            f"when it begins, {format_size(saved)} saved, {offloaded}{share:.1%} of the step recomputed, "
            f"planned and compiled in {self.planning_seconds:.2f} s"
        )


def infeasible_step(plan: StepPlan, kinds: Mapping[str, int]) -> str:
    """One paragraph for a step that no plan fits: what is live outside of the graphs, and what these need."""
    outside = ", ".join(f"{name} {format_size(nbytes)}" for name, nbytes in kinds.items())
    return (
        f"no plan of the step fits memory_budget: {format_size(plan.budget_bytes)} is below the minimum peak found, "
        f"{format_size(plan.peak_bytes)} ({plan.peak_bytes} bytes); live when the step begins: {outside}; beside that "
        f"the graphs, and eager code between them, need at least "
        f"{format_size(max(plan.peak_bytes - sum(kinds.values()), 0))}; "
        f"raise memory_budget, lower reserve, shrink the batch or the sequence, "
        f'or set on_infeasible="minimum" to run at the minimum peak'
    )


_LAST: list[StepDecision] = []


def step_decision() -> StepDecision | None:
    """Of the training step that was planned last; None before its first planning."""
    return _LAST[-1] if _LAST else None


def record_step(made: StepDecision, level: int = logging.INFO) -> None:
    _LAST[:] = [made]
    log.log(level, "%s", made)
