"""An analysis as one dictionary that is valid JSON, schema 2. Bytes and seconds are numbers, shares are fractions of 1.

schema, kind, autockpt, torch   2, "autockpt analysis", and the two versions
target, settings                what was analyzed, and the factory's arguments
inputs                          tensors that the step is called with: shape, dtype
device                          name, memory_bytes, traced_as (device type), approximations (sentences)
fits, outcome, verdict          true or false; "fastest", "fits" or "over_budget"; a sentence
budget_bytes                    of the step, optimizer state included
peak_bytes                      of the step with the chosen plan; step_peak_bytes: without optimizer state
min_peak_bytes, fastest_bytes   smallest peak of any plan found; peak of the fastest plan
compiled_bytes                  peak of the generated code by a dry run; null without one
step_seconds, fastest_seconds   of the chosen plan, and of the fastest; overhead: their ratio less 1
parameters                      number of elements
memory                          bytes of parameters (buffers included), gradients, optimizer, inputs
optimizer                       name, state_bytes; or null
frontier                        plans by rising peak: budget_bytes, peak_bytes, step_seconds, recompute_seconds,
                                saved_bytes, method, chosen
frontier_without_offload        the same of plans that offload nothing; with offload and a link only
baselines                       name, peak_bytes, step_seconds, recompute_seconds
graphs                          one entry a graph, or a variant of it: see `graph_report`
step                            all calls of the step on one clock: see `step_report`; null where it is one call
rank                            of one rank of a job: see `rank.report`; null where the step is that of one process
breaks                          graph breaks: reason, count
what_if                         change, settings, fits, peak_bytes, min_peak_bytes, fastest_bytes, step_seconds,
                                overhead
max_batch                       batch, peak_bytes, next_bytes (peak of one more; null where the search stopped),
                                stopped (why it did, or ""); null without --max-batch
estimated                       operators without a formula: name, and how their time was estimated
held                            operators whose results are saved because nobody vouched for them: operator, calls,
                                bytes (freed at most if released), release (what lets them be recomputed)
resources                       of the command's process up to the report: cpu_seconds, memory_bytes; not from Python
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch

from autockpt.analysis.graph import GraphAnalysis, Point
from autockpt.analysis.graph_report import graph_report
from autockpt.analysis.rank.report import rank_report
from autockpt.analysis.request import AnalysisRequest
from autockpt.analysis.result import PlannedStep
from autockpt.analysis.step_report import step_figures, step_report
from autockpt.options import device_limit
from autockpt.partition import estimated_operators, find_held
from autockpt.units import format_size

SCHEMA = 2
_NEGLIGIBLE = 5e-4
"""Overhead below which a step counts as at full speed."""


def build_report(request: AnalysisRequest, step: PlannedStep) -> dict[str, Any]:
    from autockpt import __version__

    troubles = [
        f"the step could not be compiled: {graph.choice.failure}" for graph in step.graphs if graph.choice.failure
    ]
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": "autockpt analysis",
        "autockpt": __version__,
        "torch": torch.__version__,
        "target": request.target,
        "settings": dict(request.settings),
        "inputs": [{"shape": list(one.shape), "dtype": str(one.dtype).removeprefix("torch.")} for one in step.inputs],
        "device": {
            "name": request.profile.name,
            "memory_bytes": request.profile.memory_bytes,
            "traced_as": step.traced_as,
            "approximations": [*step.approximations, *troubles],
        },
        "parameters": step.parameters,
        "optimizer": asdict(step.optimizer) if step.optimizer else None,
        "graphs": _graphs(step),
        "breaks": [asdict(one) for one in step.breaks],
        "what_if": [],
        "max_batch": None,
        "held": [held.as_json() for graph in step.graphs for held in find_held(graph.decision)],
        "estimated": {name: why for graph in step.graphs for name, why in _estimated(graph).items()},
    }
    report["step"] = step_report(step.step, report["graphs"]) if step.step else None
    report |= step_figures(step.step, step.graphs) if step.step else _figures(step)
    report["rank"] = _rank(request, step)
    report |= _memory(step)
    over = report["outcome"] == "over_budget"
    over = over or needed_bytes(report) > device_limit(request.memory_budget, request.profile)
    report |= {"fits": not over, "outcome": "over_budget" if over else report["outcome"]}
    return report | {"verdict": verdict(request, report)}


def _rank(request: AnalysisRequest, step: PlannedStep) -> dict[str, Any] | None:
    if request.job is None or step.fake is None or step.step is None or step.step.clock is None:
        return None
    return rank_report(request.job, step.fake, step.step.clock, step.step.plan.options)


def _graphs(step: PlannedStep) -> list[dict[str, Any]]:
    """One entry for each graph, or for each variant of it that the step uses."""
    several = step.step is not None
    named = step.step.names if step.step else ("graph 0",)
    return [graph_report(name, graph, timeline=several) for name, graph in zip(named, step.planned, strict=True)]


def _figures(step: PlannedStep) -> dict[str, Any]:
    """Of a step that is one call of one graph."""
    (graph,), state = step.graphs, step.state_bytes
    decision = graph.decision
    peak, seconds, fastest = decision.forecast.peak_bytes, decision.forecast.step_seconds, graph.fastest
    return {
        "budget_bytes": decision.budget_bytes + state,
        "peak_bytes": peak + state,
        "step_peak_bytes": peak,
        "min_peak_bytes": min(peak, graph.min_peak_bytes) + state,
        "fastest_bytes": fastest.peak_bytes + state,
        "compiled_bytes": decision.compiled_bytes + state if decision.compiled_bytes else None,
        "step_seconds": seconds,
        "fastest_seconds": fastest.seconds,
        "overhead": seconds / fastest.seconds - 1 if fastest.seconds else 0.0,
        "outcome": decision.outcome.name.lower(),
        "frontier": [_point(point, state) for point in graph.frontier],
        **_without_offload(graph, state),
        "baselines": [
            {
                "name": point.name,
                "peak_bytes": point.peak_bytes + state,
                "step_seconds": point.step_seconds,
                "recompute_seconds": point.recompute_seconds,
            }
            for point in graph.baselines
        ],
    }


def _point(point: Point, state_bytes: int) -> dict[str, Any]:
    return {
        "budget_bytes": point.budget_bytes + state_bytes,
        "peak_bytes": point.peak_bytes + state_bytes,
        "step_seconds": point.step_seconds,
        "recompute_seconds": point.recompute_seconds,
        "saved_bytes": point.saved_bytes,
        "method": point.name,
        "chosen": point.chosen,
    }


def _without_offload(graph: GraphAnalysis, state_bytes: int) -> dict[str, Any]:
    """No entry where nothing may be offloaded: `frontier` is that frontier then."""
    if not graph.without_offload:
        return {}
    return {"frontier_without_offload": [_point(point, state_bytes) for point in graph.without_offload]}


def _memory(step: PlannedStep) -> dict[str, Any]:
    gradients = step.gradient_bytes if step.step else _gradient_bytes(step.graphs[0])
    held = {"parameters": step.parameter_bytes, "gradients": gradients}
    return {"memory": {**held, "optimizer": step.state_bytes, "inputs": step.input_bytes}}


def _gradient_bytes(graph: GraphAnalysis) -> int:
    joint = graph.decision.problem.graph
    owners = {joint.by_name[name].storage for name in joint.backward_outputs}
    return sum(joint.bytes.get(owner, 0) for owner in owners)


def _estimated(graph: GraphAnalysis) -> Mapping[str, str]:
    return estimated_operators(graph.decision.problem.graph, {})


def verdict(request: AnalysisRequest, report: Mapping[str, Any]) -> str:
    budget, device = format_size(report["budget_bytes"]), report["device"]["name"]
    if report["fits"]:
        overhead, peak = report["overhead"], format_size(report["peak_bytes"])
        cost = f"{overhead:.1%} slower than the fastest plan" if overhead > _NEGLIGIBLE else "at full speed"
        return f"It fits: {peak} of {budget} on {device}, {cost}."
    needed, limit = needed_bytes(report), device_limit(request.memory_budget, request.profile)
    if needed <= report["budget_bytes"]:
        # Inside the budget, which is more than the device has.
        over = f"{format_size(needed - limit)} more than the {format_size(limit)} that {device} has for a step"
        return f"It does not fit: the peak, {format_size(needed)}, is {over}."
    over = format_size(max(needed - report["budget_bytes"], 0))
    peak = f"{_whose_peak(request, report)}, {format_size(needed)},"
    return f"It does not fit: {peak} is {over} over the budget of {budget} on {device}."


def needed_bytes(report: Mapping[str, Any]) -> int:
    return max(int(report["peak_bytes"]), int(report["compiled_bytes"] or 0))


def _whose_peak(request: AnalysisRequest, report: Mapping[str, Any]) -> str:
    if request.plan:
        return "the peak of the given plan"
    if report["step"]:
        return "the smallest peak of the whole step that was found"
    return "the smallest peak of any plan found"
