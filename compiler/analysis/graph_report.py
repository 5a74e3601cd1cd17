"""One graph of an analysis as JSON.

name, values                    "graph 0", or "graph 0, variant 1"; number of values in the joint graph
peak_bytes, min_peak_bytes, fastest_bytes, step_seconds, recompute_seconds, saved_bytes
                                of the chosen plan; graph inputs are counted
method                          the generator that found the plan
gap                             bounds on any plan's overhead, and the distance to them
timeline                        kinds (of bytes), launches, peak (index of the launch with most bytes live)
  launches                      operation, module, pass, start_seconds, seconds, recomputes, bytes (by kind)
blocks                          allocations: name, bytes, kind, first_launch, last_launch
at_peak                         operation, pass, by_kind, by_module, largest (name, bytes, kind, source)
tensors                         see `tensors`
offload                         only where it was asked for:
  host_bytes, moved_bytes       most bytes on the host at a time; bytes copied in both directions in one step
  exposed_seconds, why_not      for how long the step waits for copies; why nothing is offloaded, or ""
  copies                        name, bytes, direction ("out" to the host, or "in"), start_seconds, seconds
"""

from __future__ import annotations

from typing import Any

from autockpt.analysis.graph import GraphAnalysis
from autockpt.analysis.tensors import tensor_rows
from autockpt.partition import breakdown_json
from autockpt.passes.forecast import Content, Timeline, build_timeline
from autockpt.passes.planners import Decision

_KINDS = tuple(content.value for content in Content)


def graph_report(name: str, graph: GraphAnalysis, *, timeline: bool) -> dict[str, Any]:
    """Without a timeline of its own, a graph has summary figures only, and with `timeline` also timeline and blocks."""
    decision = graph.decision
    report: dict[str, Any] = {
        "name": name,
        "values": len(decision.problem.graph.values),
        "peak_bytes": decision.forecast.peak_bytes,
        "min_peak_bytes": decision.min_peak_bytes,
        "fastest_bytes": decision.fastest_bytes,
        "step_seconds": decision.forecast.step_seconds,
        "recompute_seconds": decision.forecast.recompute_seconds,
        "saved_bytes": decision.forecast.saved_bytes,
        "method": decision.candidate.method,
    }
    if graph.timeline is not None:
        details = {
            "gap": decision.gap.as_json(),
            "at_peak": _at_peak(graph),
            "tensors": list(tensor_rows(decision, graph.timeline)),
        } | _offload(decision, graph.timeline)
        return report | details | _live_memory(graph, graph.timeline)
    if timeline:
        return report | _live_memory(graph, build_timeline(decision.frontier.simulator, decision.plan))
    return report


def _live_memory(graph: GraphAnalysis, timeline: Timeline) -> dict[str, Any]:
    sources = graph.decision.problem.graph.by_name
    live = timeline.live()
    totals = [sum(by_kind.values()) for by_kind in live]
    launches = [
        {
            "operation": launch.operation,
            "module": sources[launch.operation].source.module,
            "pass": "backward" if launch.in_backward else "forward",
            "start_seconds": launch.start_seconds,
            "seconds": launch.seconds,
            "recomputes": launch.recomputes,
            "bytes": [by_kind[content] for content in Content],
        }
        for launch, by_kind in zip(timeline.launches, live, strict=True)
    ]
    blocks = [
        {
            "name": block.name,
            "bytes": block.nbytes,
            "kind": block.content.value,
            "first_launch": block.first_launch,
            "last_launch": block.last_launch,
        }
        for block in timeline.allocations
        if block.nbytes
    ]
    peak = totals.index(max(totals)) if totals else 0
    return {"timeline": {"kinds": list(_KINDS), "launches": launches, "peak": peak}, "blocks": blocks}


def _at_peak(graph: GraphAnalysis) -> dict[str, Any]:
    found = breakdown_json(graph.decision)
    return {
        "operation": found["operation"],
        "pass": "backward" if found["in_backward"] else "forward",
        "by_kind": {content.value: size for content, size in graph.decision.forecast.filled_by().items()},
        "by_module": found["by_module"],
        "largest": [{**entry, "kind": Content[entry["kind"].upper()].value} for entry in found["largest"]],
    }


def _offload(decision: Decision, timeline: Timeline) -> dict[str, Any]:
    """One entry; none where nobody asked for offloading."""
    if not decision.problem.host_bytes:
        return {}
    device = decision.problem.device
    rate = device.pin_bytes_per_second if device else 0.0
    copies = [
        {
            "name": copy.name,
            "bytes": copy.nbytes,
            "direction": "out" if copy.to_host else "in",
            "start_seconds": copy.start_seconds,
            "seconds": copy.end_seconds - copy.start_seconds,
        }
        for copy in timeline.copies
    ]
    return {
        "offload": {
            "host_bytes": decision.candidate.host_bytes,
            "moved_bytes": sum(copy.nbytes for copy in timeline.copies),
            "exposed_seconds": decision.candidate.exposed_seconds,
            "pin_seconds": decision.candidate.host_bytes / rate if rate else None,
            "why_not": decision.why_not_offloaded,
            "copies": copies,
        }
    }
