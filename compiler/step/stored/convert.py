"""Between planned steps in this process and what is stored of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from autockpt.partition import FixedPlan
from autockpt.passes.problem import Offload, Outcome, Plan
from autockpt.step.calls.observed import Observed
from autockpt.step.calls.phase import Key, is_forward
from autockpt.step.decision import CallDecision, StepDecision
from autockpt.step.graph import StepGraph
from autockpt.step.stored.step_file import StoredCall, StoredGraph, StoredPhase, StoredPlan, StoredStep
from autockpt.step.variant import Variant

Routes = Sequence[tuple[Observed, Sequence[Variant]]]
"""Phases, each with the variants of its calls."""


def stored_step(routes: Routes, limits: Mapping[Key, int], made: StepDecision) -> StoredStep | None:
    """A planned step; None where any of its graphs cannot be recognised again."""
    graphs = list(dict.fromkeys(graph for one, _ in routes for graph in one.graphs))
    if not all(graph.key for graph in graphs):
        return None
    used: dict[StepGraph, list[Variant]] = {graph: [] for graph in graphs}
    decided, phases = iter(made.calls), []
    for one, variants in routes:
        calls = []
        for graph, variant in zip(one.graphs, variants, strict=True):
            if variant not in used[graph]:
                used[graph].append(variant)
            calls.append(_call(next(decided), graphs.index(graph), used[graph].index(variant)))
        passes = tuple(0 if is_forward(key) else key for key in one.signature)
        phases.append(StoredPhase(passes, tuple(calls), limits.get(one.signature[0])))
    return StoredStep(
        graphs=tuple(StoredGraph(graph.key or "", tuple(map(_stored_plan, used[graph]))) for graph in graphs),
        phases=tuple(phases),
        outcome=made.outcome.name.lower(),  # type: ignore[arg-type]  # one of the three names
        budget_bytes=made.budget_bytes,
        peak_bytes=made.peak_bytes,
        eager_bytes=made.eager_bytes,
        outside_bytes=dict(made.outside_bytes),
        step_seconds=float(made.step_seconds),
    )


def fixed_plan(stored: StoredPlan) -> FixedPlan:
    offloaded = tuple(Offload(*fields) for fields in stored.offloaded)
    return FixedPlan(Plan(frozenset(stored.saved), stored.backward, offloaded), stored.method)


def _stored_plan(variant: Variant) -> StoredPlan:
    plan = variant.made.graph_plan
    offloaded = tuple((o.name, o.release_after, o.reload_before) for o in plan.offloaded)
    return StoredPlan(variant.made.method, tuple(sorted(plan.saved)), plan.backward, offloaded)


def _call(made: CallDecision, graph: int, plan: int) -> StoredCall:
    return StoredCall(
        graph,
        plan,
        made.saved_bytes,
        made.forward_bytes,
        made.backward_bytes,
        float(made.recompute_seconds),
        made.host_bytes,
    )


def decision_of(step: StoredStep, variants: Mapping[int, Sequence[Variant]], device: torch.device) -> StepDecision:
    """What was decided for a stored step, with the variants of its graphs in this process."""

    def decided(phase: int, call: StoredCall) -> CallDecision:
        made = variants[call.graph][call.plan].made
        return CallDecision(
            phase=phase,
            graph=made.name,
            method=made.method,
            saved_bytes=call.saved_bytes,
            forward_bytes=call.forward_bytes,
            backward_bytes=call.backward_bytes,
            recompute_seconds=call.recompute_seconds,
            host_bytes=call.host_bytes,
        )

    return StepDecision(
        device=str(device),
        outcome=Outcome[step.outcome.upper()],
        budget_bytes=step.budget_bytes,
        peak_bytes=step.peak_bytes,
        eager_bytes=step.eager_bytes,
        outside_bytes=dict(step.outside_bytes),
        calls=tuple(decided(number, call) for number, phase in enumerate(step.phases, 1) for call in phase.calls),
        step_seconds=step.step_seconds,
        planning_seconds=0.0,
    )
