"""Every tensor that a plan saves or recomputes, with the reason in words.

Each is a dictionary: name, operator, decision ("saved", "recomputed", or "offloaded"), bytes, seconds (of one run),
shape, dtype, module, file, line, code, reason, at_peak (whether it is live at the peak).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from autockpt.passes.forecast import Content, Timeline
from autockpt.passes.graph import Kind, Role, Trait, Value
from autockpt.passes.planners import Decision
from autockpt.units import format_seconds, format_size


def tensor_rows(decision: Decision, timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Forward values that the backward reads, and those that it recomputes into memory, in graph order.

    Values that exist only inside a fused kernel are left out: they are never allocated.
    """
    graph, plan = decision.problem.graph, decision.plan
    runs = Counter(plan.backward)
    at_peak = {entry.name for entry in decision.forecast.at_peak}
    listed = {graph.by_name[name].storage for name in graph.backward_reads} | plan.saved
    listed |= {block.name for block in timeline.allocations if block.content is Content.RECOMPUTED}
    for value in graph.values:
        if value.role is not Role.FORWARD or not value.owns_bytes or value.name not in listed:
            continue
        saved = value.name in plan.saved
        if not saved and value.name not in runs:
            continue
        spec, source = value.spec, value.source
        yield {
            "name": value.name,
            "operator": value.operator,
            "decision": "offloaded" if value.name in plan.on_host else "saved" if saved else "recomputed",
            "bytes": graph.bytes_of(value.name),
            "seconds": decision.problem.seconds[value.name],
            "shape": [int(size) for size in spec.shape] if spec else [],
            "dtype": spec.dtype if spec else "",
            "module": source.module,
            "file": source.file,
            "line": source.line,
            "code": source.code,
            "reason": _why_saved(decision, value) if saved else _why_recomputed(decision, value, runs[value.name]),
            "at_peak": value.name in at_peak,
        }


def _why_saved(decision: Decision, value: Value) -> str:
    problem = decision.problem
    if value.name in decision.plan.on_host:
        return "waits on the host between forward and backward"
    if reason := problem.must_save.get(value.name):
        return f"must be saved: {reason}"
    if value.name in problem.graph.output_storages:
        return "an output of the forward, live in any case"
    if value.kind is Kind.PART:
        return "one of several results of a kernel, which would have to recompute all of them"
    size, seconds = format_size(problem.graph.bytes_of(value.name)), format_seconds(problem.seconds[value.name])
    return f"saving {size} costs less than recomputing it, {seconds}, and what it is computed from"


def _why_recomputed(decision: Decision, value: Value, runs: int) -> str:
    problem = decision.problem
    if Trait.MUST_RECOMPUTE in value.traits:
        return "tagged MUST_RECOMPUTE by the user"
    if value.name not in problem.graph.required_forward:
        return "only the backward needs it, so it is computed there"
    seconds = format_seconds(problem.seconds[value.name] * runs)
    cost = seconds if runs == 1 else f"{seconds} in {runs} runs"
    if value.kind is Kind.POINTWISE:
        return f"fused into the kernels that read it: adds {cost}, and is neither written nor saved"
    return f"frees {format_size(problem.graph.bytes_of(value.name))} between forward and backward for {cost}"
