"""What was found about a step, as one dictionary that is valid JSON. Its fields: `README.md`, "Analysis as JSON"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from autockpt.analysis.graph import Point, Study
from autockpt.analysis.graph_report import graph_report
from autockpt.analysis.optimizer_state import OptimizerState
from autockpt.cost_models import DeviceProfile
from autockpt.inductor import Break
from autockpt.partition import estimated_operators
from autockpt.passes.problem import Outcome
from autockpt.render import peak_launch, step_launches
from autockpt.units import format_size

SCHEMA = 2


@dataclass(frozen=True)
class Facts:
    """What is known of a step beside its graphs."""

    target: str
    profile: DeviceProfile
    traced_as: str
    parameters: int
    parameter_bytes: int
    """Buffers included."""
    input_bytes: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    approximations: Sequence[str] = ()
    optimizer: OptimizerState | None = None
    breaks: Sequence[Break] = ()


def build_report(studies: Sequence[Study], facts: Facts) -> dict[str, Any]:
    from autockpt import __version__

    graphs = [graph_report(number, study) for number, study in enumerate(studies)]
    troubles = [f"the step could not be lowered: {study.trouble}" for study in studies if study.trouble]
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": "autockpt analysis",
        "autockpt": __version__,
        "torch": torch.__version__,
        "target": facts.target,
        "settings": dict(facts.settings),
        "device": {
            "name": facts.profile.name,
            "memory_bytes": facts.profile.memory_bytes,
            "traced_as": facts.traced_as,
            "approximations": [*facts.approximations, *troubles],
        },
        "parameters": facts.parameters,
        "optimizer": asdict(facts.optimizer) if facts.optimizer else None,
        "graphs": graphs,
        "breaks": [asdict(one) for one in facts.breaks],
        "what_if": [],
        "max_batch": None,
        "estimated": {name: why for study in studies for name, why in _estimated(study).items()},
    }
    report |= _totals(studies, facts, report)
    return report | {"verdict": _verdict(report)}


def _totals(studies: Sequence[Study], facts: Facts, report: Mapping[str, Any]) -> dict[str, Any]:
    state = facts.optimizer.state_bytes if facts.optimizer else 0
    given = facts.parameter_bytes + facts.input_bytes
    whole = _Whole(studies, given, state)
    peak = whole.of([study.decision.forecast.peak_bytes for study in studies])
    if len(studies) > 1 and (worst := peak_launch(step_launches(report))):
        peak = worst.live_bytes
    lowered = [study.decision.compiled_bytes for study in studies]
    budget = min(study.decision.budget_bytes for study in studies) + state
    over = any(study.decision.outcome is Outcome.OVER_BUDGET for study in studies) or (
        len(studies) > 1 and peak > budget
    )
    fastest = all(study.decision.outcome is Outcome.FASTEST for study in studies)
    seconds = sum(study.decision.forecast.step_seconds for study in studies)
    unbound = sum(study.fastest_seconds for study in studies)
    return {
        "budget_bytes": budget,
        "fits": not over,
        "outcome": "over_budget" if over else "fastest" if fastest else "fits",
        "peak_bytes": peak,
        "step_peak_bytes": peak - state,
        "min_peak_bytes": whole.of([study.min_peak_bytes for study in studies]),
        "fastest_bytes": whole.of([study.fastest_bytes for study in studies]),
        "compiled_bytes": whole.of([one for one in lowered if one is not None]) if all(lowered) else None,
        "step_seconds": seconds,
        "fastest_seconds": unbound,
        "overhead": seconds / unbound - 1 if unbound else 0.0,
        "memory": {
            "parameters": facts.parameter_bytes,
            "gradients": sum(_gradient_bytes(study) for study in studies),
            "optimizer": state,
            "inputs": facts.input_bytes,
        },
        "frontier": _frontier(studies, whole),
        "baselines": _baselines(studies, whole),
    }


@dataclass(frozen=True)
class _Whole:
    """Peaks of graphs as the peak of a step. Of several graphs it is a sum, more than they need together."""

    studies: Sequence[Study]
    graph_input_bytes: int
    state_bytes: int

    def of(self, peaks: Sequence[int]) -> int:
        if len(peaks) == 1:
            return peaks[0] + self.state_bytes
        own = [study.decision.forecast.graph_input_bytes for study in self.studies]
        return sum(peaks) - sum(own[: len(peaks)]) + self.graph_input_bytes + self.state_bytes


def _frontier(studies: Sequence[Study], whole: _Whole) -> list[dict[str, Any]]:
    """Of a step in one graph; those of several have no common one."""
    if len(studies) != 1:
        return []
    return [
        {
            "budget_bytes": point.budget_bytes + whole.state_bytes,
            "peak_bytes": whole.of([point.peak_bytes]),
            "step_seconds": point.step_seconds,
            "recompute_seconds": point.recompute_seconds,
            "saved_bytes": point.saved_bytes,
            "method": point.name,
            "chosen": point.chosen,
        }
        for point in studies[0].points
    ]


def _baselines(studies: Sequence[Study], whole: _Whole) -> list[dict[str, Any]]:
    names = [point.name for point in studies[0].baselines]
    rows = []
    for number, name in enumerate(names):
        points: list[Point] = [study.baselines[number] for study in studies]
        rows.append(
            {
                "name": name,
                "peak_bytes": whole.of([point.peak_bytes for point in points]),
                "step_seconds": sum(point.step_seconds for point in points),
                "recompute_seconds": sum(point.recompute_seconds for point in points),
            }
        )
    return rows


def _gradient_bytes(study: Study) -> int:
    graph = study.decision.problem.graph
    owners = {graph.by_name[name].storage for name in graph.backward_outputs}
    return sum(graph.bytes.get(owner, 0) for owner in owners)


def _estimated(study: Study) -> Mapping[str, str]:
    return estimated_operators(study.decision.problem.graph, {})


def _verdict(report: Mapping[str, Any]) -> str:
    budget, device = format_size(report["budget_bytes"]), report["device"]["name"]
    if report["fits"]:
        peak = format_size(report["peak_bytes"])
        cost = (
            f"{report['overhead']:.1%} slower than the fastest plan" if report["overhead"] > 5e-4 else "at full speed"
        )
        return f"It fits: {peak} of {budget} on {device}, {cost}."
    over = format_size(max(report["peak_bytes"] - report["budget_bytes"], 0))
    floor = format_size(report["peak_bytes"])
    return (
        f"It does not fit: the lowest peak that was found, {floor}, is {over} over the budget of {budget} on {device}."
    )
