"""What was decided, in words, as a table and as JSON.

Operators that no formula knows, named: an estimate is never silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autockpt.partition.breakdown import breakdown_json
from autockpt.passes.forecast import TORCH_PARTITION, Content
from autockpt.passes.graph import JointGraph, Role
from autockpt.passes.planners import Decision
from autockpt.passes.problem import work_of_value
from autockpt.units import format_size


def one_line(decision: Decision, name: str) -> str:
    forecast = decision.forecast
    lowered = decision.compiled_bytes
    seen = f" (lowered: {format_size(lowered)})" if lowered is not None else ""
    return (
        f"{name}: peak {format_size(forecast.peak_bytes)}{seen} of a budget of {format_size(decision.budget_bytes)}, "
        f"{len(decision.plan.saved)} tensors ({format_size(forecast.saved_bytes)}) saved, "
        f"{forecast.recompute_share:.1%} of the step recomputed ({decision.candidate.method}, {decision.gap}), "
        f"planned in {decision.planning_seconds:.2f} s"
    )


def tensor_table(decision: Decision) -> str:
    """Every forward value that the backward depends on: saved or recomputed, its size, seconds, reason and source."""
    graph, plan = decision.problem.graph, decision.plan
    again = set(plan.backward)
    rows = []
    for value in graph.values:
        if value.role is not Role.FORWARD or not value.owns_bytes or (value.name not in again | plan.saved):
            continue
        fate = "saved" if value.name in plan.saved else "recomputed"
        rows.append(
            f"{fate:<10}  {format_size(graph.bytes_of(value.name)):>10}  "
            f"{decision.problem.seconds[value.name] * 1e6:>9.1f} us  {value.name:<28}  "
            f"{decision.problem.must_save.get(value.name, ''):<30}  {value.source}".rstrip()
        )
    return "\n".join(rows)


_MUCH = 0.9
_ALWAYS_NAMED = (Content.PARAMETER, Content.INPUT, Content.GRADIENT, Content.SAVED, Content.TEMPORARY)


def unused(decision: Decision, used_bytes: int) -> str | None:
    """Why a plan that recomputes leaves a tenth of the budget; None where it does not, empty where nobody knows."""
    if used_bytes >= _MUCH * decision.budget_bytes or not decision.forecast.recompute_seconds:
        return None
    chosen, budget = decision.candidate, decision.budget_bytes
    if chosen.method == TORCH_PARTITION:
        return "Inductor's own partition fits, and runs as it is"
    if chosen.seconds <= decision.frontier.fastest.seconds:
        return "this is the fastest plan: recomputing is faster there than reading memory"
    faster = [look for look in decision.looks if look.candidate.seconds < chosen.seconds]
    if refused := [look.compiled_bytes for look in faster if look.needed_bytes > budget]:
        return f"a faster plan was lowered to {format_size(min(refused))}"
    needed = decision.frontier.next_faster_bytes(chosen)
    return f"the next faster plan that was found needs {format_size(needed)}" if needed and needed > budget else ""


def infeasible(decision: Decision) -> str:
    """One paragraph: the floor, what fills it, and the ways out."""
    forecast = decision.forecast
    shown = dict.fromkeys(_ALWAYS_NAMED, 0) | forecast.filled_by()
    floor = decision.compiled_bytes or forecast.peak_bytes
    filled = ", ".join(f"{content.value} {format_size(size)}" for content, size in shown.items())
    return (
        f"no plan fits memory_budget: {format_size(decision.budget_bytes)} is below the lowest peak that was found, "
        f"{format_size(floor)} ({floor} bytes), reached at `{forecast.peak.operation}` "
        f"in the {'backward' if forecast.peak.in_backward else 'forward'} and filled, as forecast, by {filled}; "
        f"raise memory_budget, lower reserve, shrink the batch or the sequence, "
        f'or set on_infeasible="minimum" to run at the lowest peak'
    )


def as_json(decision: Decision, name: str) -> dict[str, Any]:
    """Everything that a bug report needs of a decision."""
    forecast = decision.forecast
    return {
        "schema": 1,
        "graph": name,
        "outcome": decision.outcome.name.lower(),
        "budget_bytes": decision.budget_bytes,
        "peak_bytes": forecast.peak_bytes,
        "compiled_bytes": decision.compiled_bytes,
        "looks": [[look.forecast_bytes, look.compiled_bytes] for look in decision.looks],
        "min_peak_bytes": decision.min_peak_bytes,
        "fastest_bytes": decision.fastest_bytes,
        "graph_input_bytes": forecast.graph_input_bytes,
        "saved_bytes": forecast.saved_bytes,
        "recompute_seconds": forecast.recompute_seconds,
        "step_seconds": forecast.step_seconds,
        "planning_seconds": decision.planning_seconds,
        "planner": decision.candidate.method,
        "timed_out": decision.frontier.timed_out,
        "gap": decision.gap.as_json(),
        "at_peak": breakdown_json(decision),
        "must_save": {k: v for k, v in decision.problem.must_save.items() if k in decision.plan.saved},
        "saved": {name: decision.problem.graph.bytes_of(name) for name in sorted(decision.plan.saved)},
        "recomputed": _recomputed(decision.problem.graph, decision),
        "backward": list(decision.plan.backward),
    }


def _recomputed(graph: JointGraph, decision: Decision) -> list[str]:
    return [n for n in decision.plan.backward if graph.by_name[n].role is Role.FORWARD and n in graph.required_forward]


def estimated_operators(graph: JointGraph, measured: Mapping[str, float]) -> dict[str, str]:
    """Each with what its seconds rest on: "measured" only where every call of it was timed."""
    timed: dict[str, bool] = {}
    for value in graph.values:
        if value.kind.runs and work_of_value(graph, value).estimated:
            timed[value.operator] = timed.get(value.operator, True) and value.name in measured
    return {operator: "measured" if timed[operator] else "by bytes" for operator in sorted(timed)}


def named(estimated: Mapping[str, str]) -> str:
    """The end of a sentence; empty where there is nothing to name."""
    if not estimated:
        return ""
    return "; estimated, no formula: " + ", ".join(f"{operator} ({basis})" for operator, basis in estimated.items())
