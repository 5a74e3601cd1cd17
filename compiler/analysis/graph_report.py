"""One graph of an analysis as JSON: launches in time, blocks of memory, the peak, and every tensor."""

from __future__ import annotations

from typing import Any

from autockpt.analysis.graph import Study
from autockpt.analysis.tensors import tensor_rows
from autockpt.partition import breakdown_json
from autockpt.passes.forecast import Content, Timeline

_KINDS = tuple(content.value for content in Content)


def graph_report(number: int, study: Study) -> dict[str, Any]:
    decision = study.decision
    facts: dict[str, Any] = {
        "name": f"graph {number}",
        "values": len(decision.problem.graph.values),
        "peak_bytes": decision.forecast.peak_bytes,
        "min_peak_bytes": decision.min_peak_bytes,
        "fastest_bytes": decision.fastest_bytes,
        "step_seconds": decision.forecast.step_seconds,
        "recompute_seconds": decision.forecast.recompute_seconds,
        "saved_bytes": decision.forecast.saved_bytes,
        "method": decision.candidate.method,
    }
    if study.timeline is None:
        return facts
    return facts | {
        "gap": decision.gap.as_json(),
        "timeline": _timeline(study, study.timeline),
        "blocks": [
            {
                "name": b.name,
                "bytes": b.nbytes,
                "kind": b.content.value,
                "first_launch": b.first_launch,
                "last_launch": b.last_launch,
            }
            for b in study.timeline.allocations
            if b.nbytes
        ],
        "at_peak": _at_peak(study),
        "tensors": list(tensor_rows(decision, study.timeline)),
    }


def _timeline(study: Study, timeline: Timeline) -> dict[str, Any]:
    known = study.decision.problem.graph.by_name
    live = timeline.live()
    totals = [sum(stack.values()) for stack in live]
    return {
        "kinds": list(_KINDS),
        "launches": [
            {
                "operation": launch.operation,
                "module": known[launch.operation].source.module,
                "pass": "backward" if launch.in_backward else "forward",
                "start_seconds": launch.start_seconds,
                "seconds": launch.seconds,
                "recomputes": launch.recomputes,
                "bytes": [stack[content] for content in Content],
            }
            for launch, stack in zip(timeline.launches, live, strict=True)
        ],
        "peak": totals.index(max(totals)) if totals else 0,
    }


def _at_peak(study: Study) -> dict[str, Any]:
    found = breakdown_json(study.decision)
    largest = [{**entry, "kind": Content[entry["kind"].upper()].value} for entry in found["largest"]]
    return {
        "operation": found["operation"],
        "pass": "backward" if found["in_backward"] else "forward",
        "by_kind": {content.value: size for content, size in study.decision.forecast.filled_by().items()},
        "by_module": found["by_module"],
        "largest": largest,
    }
