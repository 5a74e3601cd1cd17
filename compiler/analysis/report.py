"""An analysis as one dictionary that is valid JSON, schema 2. Bytes and seconds are numbers, shares are fractions of 1.

schema, kind, autockpt, torch   2, "autockpt analysis", and the two versions
target, settings                what was analyzed, and the factory's arguments
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
                                saved_bytes, method, chosen; empty for a step of several graphs
baselines                       name, peak_bytes, step_seconds, recompute_seconds
graphs                          one entry a graph: see `graph_report`
breaks                          graph breaks: reason, count
what_if                         change, settings, fits, peak_bytes, min_peak_bytes, fastest_bytes, step_seconds,
                                overhead
max_batch                       batch, peak_bytes, next_bytes (peak of one more; null where the search stopped),
                                stopped (why it did, or ""); null without --max-batch
estimated                       operators without a formula: name, and how their time was estimated
held                            operators whose results are saved because nobody vouched for them: operator, calls,
                                bytes (freed at most if released), release (what lets them be recomputed)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch

from autockpt.analysis.graph import GraphAnalysis
from autockpt.analysis.graph_report import graph_report
from autockpt.analysis.request import AnalysisRequest
from autockpt.analysis.result import PlannedStep
from autockpt.analysis.verdict import needed_bytes, verdict
from autockpt.budget import device_limit
from autockpt.partition import estimated_operators, find_held
from autockpt.passes.problem import Outcome
from autockpt.render import peak_launch, step_launches

SCHEMA = 2


def build_report(request: AnalysisRequest, step: PlannedStep) -> dict[str, Any]:
    from autockpt import __version__

    several = len(step.graphs) > 1
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
        "device": {
            "name": request.profile.name,
            "memory_bytes": request.profile.memory_bytes,
            "traced_as": step.traced_as,
            "approximations": [*step.approximations, *troubles],
        },
        "parameters": step.parameters,
        "optimizer": asdict(step.optimizer) if step.optimizer else None,
        # The peak of several graphs together is found from their timelines.
        "graphs": [graph_report(number, graph, timeline=several) for number, graph in enumerate(step.graphs)],
        "breaks": [asdict(one) for one in step.breaks],
        "what_if": [],
        "max_batch": None,
        "held": [held.as_json() for graph in step.graphs for held in find_held(graph.decision)],
        "estimated": {name: why for graph in step.graphs for name, why in _estimated(graph).items()},
    }
    report |= _memory(step, report)
    report |= _budget(request, step, report)
    report |= _seconds(step)
    report |= _outcome(request, step, report)
    report |= {"frontier": _frontier(step), "baselines": _baselines(step)}
    return report | {"verdict": verdict(request, report)}


def _memory(step: PlannedStep, report: Mapping[str, Any]) -> dict[str, Any]:
    peak = step.peak_bytes([graph.decision.forecast.peak_bytes for graph in step.graphs])
    if len(step.graphs) > 1 and (worst := peak_launch(step_launches(report))):
        peak = worst.live_bytes
    compiled = [size for graph in step.graphs if (size := graph.decision.compiled_bytes)]
    return {
        "peak_bytes": peak,
        "step_peak_bytes": peak - step.state_bytes,
        "min_peak_bytes": min(peak, step.peak_bytes([graph.min_peak_bytes for graph in step.graphs])),
        "fastest_bytes": step.peak_bytes([graph.fastest.peak_bytes for graph in step.graphs]),
        "compiled_bytes": step.peak_bytes(compiled) if len(compiled) == len(step.graphs) else None,
        "memory": {
            "parameters": step.parameter_bytes,
            "gradients": sum(_gradient_bytes(graph) for graph in step.graphs),
            "optimizer": step.state_bytes,
            "inputs": step.input_bytes,
        },
    }


def _budget(request: AnalysisRequest, step: PlannedStep, report: Mapping[str, Any]) -> dict[str, Any]:
    fraction = request.memory_budget
    if len(step.graphs) == 1 or not isinstance(fraction, float):
        return {"budget_bytes": min(graph.decision.budget_bytes for graph in step.graphs) + step.state_bytes}
    # A fraction is a position in the range of the step. Its graphs were planned at that position of their own ranges,
    # which may add up to more: what they need is then what the fraction means.
    low, high = report["min_peak_bytes"], report["fastest_bytes"]
    return {"budget_bytes": max(low + int((high - low) * fraction), report["peak_bytes"])}


def _seconds(step: PlannedStep) -> dict[str, Any]:
    seconds = sum(graph.decision.forecast.step_seconds for graph in step.graphs)
    fastest = sum(graph.fastest.seconds for graph in step.graphs)
    overhead = seconds / fastest - 1 if fastest else 0.0
    return {"step_seconds": seconds, "fastest_seconds": fastest, "overhead": overhead}


def _outcome(request: AnalysisRequest, step: PlannedStep, report: Mapping[str, Any]) -> dict[str, Any]:
    outcomes = {graph.decision.outcome for graph in step.graphs}
    over = Outcome.OVER_BUDGET in outcomes
    # Each graph is planned within the whole budget; together they may be over it.
    over = over or (len(step.graphs) > 1 and report["peak_bytes"] > report["budget_bytes"])
    over = over or needed_bytes(report) > device_limit(request.memory_budget, request.profile)
    name = "over_budget" if over else "fastest" if outcomes == {Outcome.FASTEST} else "fits"
    return {"fits": not over, "outcome": name}


def _frontier(step: PlannedStep) -> list[dict[str, Any]]:
    """Of a step in one graph; the frontiers of several have no common one."""
    if len(step.graphs) != 1:
        return []
    return [
        {
            "budget_bytes": point.budget_bytes + step.state_bytes,
            "peak_bytes": step.peak_bytes([point.peak_bytes]),
            "step_seconds": point.step_seconds,
            "recompute_seconds": point.recompute_seconds,
            "saved_bytes": point.saved_bytes,
            "method": point.name,
            "chosen": point.chosen,
        }
        for point in step.graphs[0].frontier
    ]


def _baselines(step: PlannedStep) -> list[dict[str, Any]]:
    """Each with its policy applied to every graph."""
    return [
        {
            "name": points[0].name,
            "peak_bytes": step.peak_bytes([point.peak_bytes for point in points]),
            "step_seconds": sum(point.step_seconds for point in points),
            "recompute_seconds": sum(point.recompute_seconds for point in points),
        }
        for points in zip(*(graph.baselines for graph in step.graphs), strict=True)
    ]


def _gradient_bytes(graph: GraphAnalysis) -> int:
    joint = graph.decision.problem.graph
    owners = {joint.by_name[name].storage for name in joint.backward_outputs}
    return sum(joint.bytes.get(owner, 0) for owner in owners)


def _estimated(graph: GraphAnalysis) -> Mapping[str, str]:
    return estimated_operators(graph.decision.problem.graph, {})
