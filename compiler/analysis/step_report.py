"""The step of an analysis as JSON, where it is more than one call of one graph.

name                "whole step"
accumulate          micro-batches in the step
peak_bytes, step_seconds, recompute_seconds, saved_bytes
                    of all calls together; optimizer state is counted in the peak
proven, gap         whether the choice of options is proven optimal, and the distance to its bounds
calls               by position: graph (number in `graphs`; -1 for operators that are not compiled), forward_bytes and
                    backward_bytes (all live bytes at the worst moment of each pass), seconds
passes              in order: call, pass, outside (bytes by kind), held_bytes (by the other calls in flight), peak_bytes
timeline            as of a graph, over all passes; a launch has `graph` and `call` besides; no optimizer state
at_peak             operation, pass, by_kind, by_module, largest (only of the graph that runs there)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autockpt.analysis.graph import GraphAnalysis
from autockpt.analysis.step import StepAnalysis, step_frontier, with_candidates
from autockpt.inductor import BETWEEN, COMMUNICATION, GATHERED, GRADIENTS, INPUTS, PARAMETERS
from autockpt.passes.forecast import Content
from autockpt.passes.step import PlanOption, StepPlan, fastest_choices

_KINDS = (*(content.value for content in Content), BETWEEN)
_KINDS_OF_RANK = (*_KINDS, GATHERED, COMMUNICATION)
_GRAPH_INPUTS = (Content.PARAMETER.value, Content.INPUT.value)
_OUTSIDE = {
    PARAMETERS: Content.PARAMETER.value,
    INPUTS: Content.INPUT.value,
    GRADIENTS: Content.GRADIENT.value,
    BETWEEN: BETWEEN,
    GATHERED: GATHERED,
    COMMUNICATION: COMMUNICATION,
}


def step_report(step: StepAnalysis, graphs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`graphs` are the reports of the variants that are used, with their timelines."""
    launches = list(_launches(step, graphs))
    totals = [sum(launch["bytes"]) for launch in launches]
    peak = totals.index(max(totals)) if totals else 0
    return {
        "name": "whole step",
        "accumulate": step.accumulate,
        "proven": step.plan.proven,
        "gap": step.plan.gap.as_json(),
        "peak_bytes": step.plan.peak_bytes,
        "step_seconds": step.seconds(step.plan),
        "recompute_seconds": _recompute_seconds(step.plan.options),
        "saved_bytes": sum(option.saved_bytes for option in step.plan.options),
        "calls": list(_calls(step)),
        "passes": list(_passes(step)),
        "timeline": {"kinds": list(_kinds(step)), "launches": launches, "peak": peak},
        "blocks": [],
        "tensors": [],
        "at_peak": _at_peak(launches[peak], graphs, _kinds(step)) if launches else {},
    }


def _kinds(step: StepAnalysis) -> tuple[str, ...]:
    return _KINDS_OF_RANK if step.clock else _KINDS


def step_figures(step: StepAnalysis, graphs: Sequence[GraphAnalysis]) -> dict[str, Any]:
    """The figures of a report that a step of one call has, too. `graphs` are as they were planned one by one."""
    plan, problem = step.plan, step.plan.problem
    seconds = step.seconds(plan)
    # On several streams the plan that computes least need not be the fastest.
    fastest = min(step.fastest_seconds(problem), seconds)
    return {
        "budget_bytes": plan.budget_bytes,
        "peak_bytes": plan.peak_bytes,
        "step_peak_bytes": plan.peak_bytes - step.state_bytes,
        "min_peak_bytes": step.range.min_peak_bytes,
        "fastest_bytes": step.range.fastest_bytes,
        "compiled_bytes": None,
        "step_seconds": seconds,
        "fastest_seconds": fastest,
        "overhead": seconds / fastest - 1 if fastest else 0.0,
        "outcome": plan.outcome.name.lower(),
        "frontier": [_point(step, found, found is plan) for found in step_frontier(step)] if graphs[0].frontier else [],
        "baselines": list(_baselines(step, graphs)),
    }


def _point(step: StepAnalysis, plan: StepPlan, chosen: bool) -> dict[str, Any]:
    return {
        "budget_bytes": plan.budget_bytes,
        "peak_bytes": plan.peak_bytes,
        "step_seconds": step.seconds(plan),
        "recompute_seconds": _recompute_seconds(plan.options),
        "saved_bytes": sum(option.saved_bytes for option in plan.options),
        "method": "all calls together",
        "chosen": chosen,
    }


def _baselines(step: StepAnalysis, graphs: Sequence[GraphAnalysis]) -> Iterator[dict[str, Any]]:
    """Each with its policy applied to every graph."""
    for number in range(min(len(graph.candidates) for graph in graphs)):
        problem = with_candidates(step, graphs, number)
        choices = fastest_choices(problem)
        yield {
            "name": graphs[0].candidates[number].method,
            "peak_bytes": problem.peak_bytes(choices),
            "step_seconds": step.fastest_seconds(problem),
            "recompute_seconds": _recompute_seconds(problem.chosen(choices)),
        }


def _recompute_seconds(options: Sequence[PlanOption]) -> float:
    return sum(option.candidate.recompute_seconds for option in options if option.candidate)


def _calls(step: StepAnalysis) -> Iterator[dict[str, Any]]:
    found = zip(step.graph_of_call, step.plan.call_peaks, step.plan.options, strict=True)
    for graph, peaks, option in found:
        bytes_by_pass = {"forward_bytes": peaks.forward_bytes, "backward_bytes": peaks.backward_bytes}
        yield {"graph": graph, **bytes_by_pass, "seconds": option.seconds}


def _passes(step: StepAnalysis) -> Iterator[dict[str, Any]]:
    problem, options = step.plan.problem, step.plan.options
    for one in step.observed.passes:
        call, peaks = problem.calls[one.call], step.plan.call_peaks[one.call]
        in_flight = call.in_flight_backward if one.in_backward else call.in_flight_forward
        yield {
            "call": one.call,
            "pass": "backward" if one.in_backward else "forward",
            "outside": dict(one.outside),
            "held_bytes": sum(problem.calls[other].held_bytes(options[other]) for other in in_flight),
            "peak_bytes": peaks.backward_bytes if one.in_backward else peaks.forward_bytes,
        }


def _launches(step: StepAnalysis, graphs: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    start, phase, kinds = 0.0, "forward", _kinds(step)
    for described in _passes(step):
        number, call = step.graph_of_call[described["call"]], described["call"]
        live = dict.fromkeys(kinds, 0)
        for kind, nbytes in described["outside"].items():
            live[_OUTSIDE[kind]] += nbytes
        live[Content.SAVED.value] += described["held_bytes"]
        if number < 0:
            nothing = {"operation": "operators that are not compiled", "module": "", "pass": phase}
            timing = {"start_seconds": start, "seconds": 0.0, "recomputes": False}
            yield {**nothing, **timing, "bytes": list(live.values()), "graph": number, "call": call}
            continue
        phase = described["pass"]
        for launch in graphs[number]["timeline"]["launches"]:
            if launch["pass"] == phase:
                own = _own(launch, graphs[number], _outputs_counted(step, call, phase))
                nbytes = [live[kind] + own.get(kind, 0) for kind in kinds]
                yield {**launch, "start_seconds": start, "bytes": nbytes, "graph": number, "call": call}
                start += launch["seconds"]


def _outputs_counted(step: StepAnalysis, call: int, phase: str) -> int:
    """Bytes of outputs that a graph's own timeline holds during its backward, and that outside bytes hold here."""
    if phase == "forward":
        return 0
    graph = step.graphs[step.graph_of_call[call]]
    option, posed = step.plan.options[call], step.plan.problem.calls[call]
    assert option.candidate is not None
    own = option.candidate.backward_bytes - graph.decision.problem.graph.graph_input_bytes
    return own - posed.backward_bytes(option)


def _own(launch: Mapping[str, Any], graph: Mapping[str, Any], outputs: int) -> dict[str, int]:
    """Bytes by kind that a launch adds to what is outside."""
    own = dict(zip(graph["timeline"]["kinds"], launch["bytes"], strict=True))
    for kind in _GRAPH_INPUTS:
        own[kind] = 0
    for kind in (Content.OUTPUT.value, Content.SAVED.value):
        taken = min(outputs, own.get(kind, 0))
        own[kind] = own.get(kind, 0) - taken
        outputs -= taken
    return own


def _at_peak(launch: Mapping[str, Any], graphs: Sequence[Mapping[str, Any]], kinds: Sequence[str]) -> dict[str, Any]:
    by_kind = {kind: nbytes for kind, nbytes in zip(kinds, launch["bytes"], strict=True) if nbytes}
    found = graphs[launch["graph"]].get("at_peak", {}) if launch["graph"] >= 0 else {}
    return {
        "operation": launch["operation"],
        "pass": launch["pass"],
        "by_kind": by_kind,
        "by_module": found.get("by_module", {}),
        "largest": found.get("largest", []),
    }
