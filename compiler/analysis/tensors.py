"""Why each tensor is saved or computed again, in words.

Tensors that differ only in the number of their layer, told once: a model of 80 layers has few different ones.
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
    """Forward values that the backward reads, and those that it makes again in memory, in the order they are made.

    What a fused kernel computes on its way and never writes is no tensor.
    """
    graph, plan = decision.problem.graph, decision.plan
    runs = Counter(plan.backward)
    live = {entry.name for entry in decision.forecast.at_peak}
    told = {graph.by_name[name].storage for name in graph.backward_reads} | plan.saved
    told |= {block.name for block in timeline.allocations if block.content is Content.RECOMPUTED}
    for value in graph.values:
        if value.role is not Role.FORWARD or not value.owns_bytes or value.name not in told:
            continue
        if value.name not in plan.saved and value.name not in runs:
            continue
        spec, source = value.spec, value.source
        yield {
            "name": value.name,
            "operator": value.operator,
            "decision": "saved" if value.name in plan.saved else "recomputed",
            "bytes": graph.bytes_of(value.name),
            "seconds": decision.problem.seconds[value.name],
            "shape": [int(size) for size in spec.shape] if spec else [],
            "dtype": spec.dtype if spec else "",
            "module": source.module,
            "file": source.file,
            "line": source.line,
            "code": source.code,
            "reason": _saved(decision, value)
            if value.name in plan.saved
            else _again(decision, value, runs[value.name]),
            "at_peak": value.name in live,
        }


def _saved(decision: Decision, value: Value) -> str:
    problem = decision.problem
    if pin := problem.must_save.get(value.name):
        return f"cannot be computed again: {pin}"
    if value.name in problem.graph.output_storages:
        return "an output of the forward, there in any case"
    seconds = problem.seconds[value.name]
    if value.kind is Kind.PART:
        return "made together with others by one kernel, which would run again for it"
    size = format_size(problem.graph.bytes_of(value.name))
    return f"{size} are cheaper to hold than {format_seconds(seconds)} and what leads to it are to compute again"


def _again(decision: Decision, value: Value, runs: int) -> str:
    problem = decision.problem
    if Trait.MUST_RECOMPUTE in value.traits:
        return "tagged MUST_RECOMPUTE by the user"
    if value.name not in problem.graph.required_forward:
        return "only the backward asks for it, and makes it there"
    times = "" if runs == 1 else f", {runs} times"
    seconds = format_seconds(problem.seconds[value.name] * runs)
    if value.kind is Kind.POINTWISE:
        return f"fused into what reads it: adds {seconds}{times} and need not be written or held"
    return f"frees {format_size(problem.graph.bytes_of(value.name))} between the passes for {seconds}{times}"
