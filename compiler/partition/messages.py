"""A decision in words, as a table and as JSON, and the messages about budgets.

Operators without a formula are named, so that no estimate is silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autockpt.partition.breakdown import breakdown_json
from autockpt.partition.held import find_held
from autockpt.passes.forecast import TORCH_PARTITION, Content
from autockpt.passes.graph import JointGraph, Role
from autockpt.passes.planners import Decision
from autockpt.passes.problem import work_of_value
from autockpt.units import format_size

_MOSTLY_USED = 0.9
_ALWAYS_NAMED = (Content.PARAMETER, Content.INPUT, Content.GRADIENT, Content.SAVED, Content.TEMPORARY)


def one_line(decision: Decision, name: str) -> str:
    """One line for the log: peak, budget, what is saved and recomputed, the gap, planning time."""
    plan, forecast, compiled_bytes = decision.plan, decision.forecast, decision.compiled_bytes
    compiled = f" (compiled: {format_size(compiled_bytes)})" if compiled_bytes is not None else ""
    return (
        f"{name}: peak {format_size(forecast.peak_bytes)}{compiled} "
        f"of a budget of {format_size(decision.budget_bytes)}, "
        f"{len(plan.saved) - len(plan.offloaded)} tensors ({format_size(forecast.saved_bytes)}) saved, "
        f"{offloaded_part(decision)}"
        f"{forecast.recompute_share:.1%} of the step recomputed ({decision.candidate.method}, {decision.gap}), "
        f"planned in {decision.planning_seconds:.2f} s"
    )


def offloaded_part(decision: Decision) -> str:
    """A part of a sentence; empty where nobody asked for offloading."""
    plan, candidate = decision.plan, decision.candidate
    if plan.offloaded:
        waits = f"the step waits {candidate.exposed_seconds * 1e3:.2f} ms for them"
        stay = f"{len(decision.tags_not_followed)} tagged ones stay, " if decision.tags_not_followed else ""
        return f"{len(plan.offloaded)} ({format_size(candidate.host_bytes)}) offloaded to the host, {waits}, {stay}"
    why = decision.why_not_offloaded
    return f"none offloaded ({why}), " if why else ""


def offloaded_json(decision: Decision) -> dict[str, Any]:
    """Empty where nobody asked for offloading."""
    plan, candidate = decision.plan, decision.candidate
    if not decision.problem.host_bytes:
        return {}
    return {
        "offloaded": {name: decision.problem.graph.bytes_of(name) for name in sorted(plan.on_host)},
        "host_bytes": candidate.host_bytes,
        "exposed_seconds": candidate.exposed_seconds,
        "why_not_offloaded": decision.why_not_offloaded,
        "tags_not_followed": list(decision.tags_not_followed),
    }


def tensor_table(decision: Decision) -> str:
    """Every forward value that the backward depends on: saved or recomputed, its size, seconds, reason and source."""
    graph, plan = decision.problem.graph, decision.plan
    recomputed = set(plan.backward)
    rows = []
    for value in graph.values:
        if value.role is not Role.FORWARD or not value.owns_bytes or (value.name not in recomputed | plan.saved):
            continue
        choice = "offloaded" if value.name in plan.on_host else "saved" if value.name in plan.saved else "recomputed"
        rows.append(
            f"{choice:<10}  {format_size(graph.bytes_of(value.name)):>10}  "
            f"{decision.problem.seconds[value.name] * 1e6:>9.1f} us  {value.name:<28}  "
            f"{decision.problem.must_save.get(value.name, ''):<30}  {value.source}".rstrip()
        )
    return "\n".join(rows)


def unused_reason(decision: Decision, used_bytes: int) -> str | None:
    """Why a plan that recomputes leaves a tenth of the budget unused; None where it does not, "" where unknown."""
    if used_bytes >= _MOSTLY_USED * decision.budget_bytes or not decision.candidate.recompute_seconds:
        return None
    chosen, budget_bytes = decision.candidate, decision.budget_bytes
    if chosen.method == TORCH_PARTITION:
        return "torch's own partition fits, and runs as it is"
    if chosen.seconds <= decision.frontier.fastest.seconds:
        return "this is the fastest plan: recomputing is faster there than reading memory"
    faster = [run for run in decision.dry_runs if run.candidate.seconds < chosen.seconds]
    if rejected := [run.compiled_bytes for run in faster if run.needed_bytes > budget_bytes]:
        return f"a faster plan compiled to {format_size(min(rejected))}"
    needed = decision.frontier.next_faster_bytes(chosen)
    return f"the next faster plan found needs {format_size(needed)}" if needed and needed > budget_bytes else ""


def infeasible(decision: Decision, outside_bytes: int = 0, sizes: str = "") -> str:
    """One paragraph for a budget that no plan fits: the minimum peak, what fills it, and what to change.

    `outside_bytes` are live outside of the graph and are no part of the decision's budget; `sizes` are the dynamic ones
    of the call, such as "x.size(0)=64".
    """
    forecast = decision.forecast
    shown = dict.fromkeys(_ALWAYS_NAMED, 0) | forecast.filled_by()
    min_peak_bytes = decision.needed_bytes + outside_bytes
    filled = ", ".join(f"{content.value} {format_size(size)}" for content, size in shown.items())
    filled += f", and outside of the graph {format_size(outside_bytes)}" if outside_bytes else ""
    budget_bytes = decision.budget_bytes + outside_bytes
    return (
        f"no plan fits memory_budget: {format_size(budget_bytes)} is below the minimum peak found"
        f"{f' for a call with {sizes}' if sizes else ''}, "
        f"{format_size(min_peak_bytes)} ({min_peak_bytes} bytes), reached at `{forecast.peak.operation}` "
        f"in the {'backward' if forecast.peak.in_backward else 'forward'} and filled, as forecast, by {filled}; "
        f"raise memory_budget, lower reserve, shrink the batch or the sequence, "
        f'or set on_infeasible="minimum" to run at the minimum peak'
    )


def over_budget(decision: Decision) -> str:
    """One sentence for a plan from a file that does not fit the budget."""
    needed = decision.dry_runs[-1].needed_bytes if decision.dry_runs else decision.candidate.peak_bytes
    budget_bytes = decision.budget_bytes
    return (
        f"the plan needs {format_size(needed)} ({needed} bytes), which is over memory_budget, "
        f"{format_size(budget_bytes)} ({budget_bytes} bytes); raise memory_budget, or leave `plan` out: "
        f"the minimum peak of any plan is {format_size(decision.min_peak_bytes)}"
    )


def decision_json(decision: Decision, name: str) -> dict[str, Any]:
    """Everything about a decision that a bug report needs. Schema 2."""
    forecast, candidate = decision.forecast, decision.candidate
    return {
        "schema": 2,
        "graph": name,
        "outcome": decision.outcome.name.lower(),
        "budget_bytes": decision.budget_bytes,
        "peak_bytes": candidate.peak_bytes,
        "compiled_bytes": decision.compiled_bytes,
        "dry_runs": [[run.forecast_bytes, run.compiled_bytes] for run in decision.dry_runs],
        "min_peak_bytes": decision.min_peak_bytes,
        "fastest_bytes": decision.fastest_bytes,
        "graph_input_bytes": forecast.graph_input_bytes,
        "saved_bytes": forecast.saved_bytes,
        "recompute_seconds": candidate.recompute_seconds,
        "step_seconds": candidate.seconds,
        "planning_seconds": decision.planning_seconds,
        "planner": candidate.method,
        "timed_out": decision.frontier.space.timed_out,
        "gap": decision.gap.as_json(),
        "at_peak": breakdown_json(decision),
        "held": [held.as_json() for held in find_held(decision)],
        "must_save": {k: v for k, v in decision.problem.must_save.items() if k in decision.plan.saved},
        "saved": {name: decision.problem.graph.bytes_of(name) for name in sorted(decision.plan.saved)},
        "recomputed": _recomputed(decision.problem.graph, decision),
        "backward": list(decision.plan.backward),
    } | offloaded_json(decision)


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
