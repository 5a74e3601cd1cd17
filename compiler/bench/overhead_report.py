"""What `autockpt bench overhead` prints and writes: a table of some budgets, and a summary of all plans."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import torch
from rich.table import Table

from autockpt import __version__
from autockpt.bench.overhead import Overhead, TimedPlan

_NEAR = 0.10
"""Errors up to this count as near in the summary."""
_WORST = 5
"""Plans that the summary explains by kernel family."""
_HEADINGS = ("model", "step", "predicted", "plan", "ratio", "predicted", "error", "rank correlation")


def overhead_rows(overheads: Sequence[Overhead], budgets: Sequence[float]) -> list[list[str]]:
    """One row for each budget of each model. Ratios are to the plan that recomputes nothing."""
    rows = []
    for overhead in overheads:
        if overhead.failure:
            rows.append([overhead.name, overhead.failure, *[""] * (len(_HEADINGS) - 2)])
            continue
        first = overhead.plans[0]
        head = [overhead.name, _milliseconds(first.measured_seconds), _milliseconds(first.predicted_seconds)]
        for plan in shown_plans(overhead, budgets):
            rows.append([*head, *_cells(plan), f"{overhead.rank_correlation:.2f}" if head[0] else ""])
            head = ["", "", ""]
    return rows


def shown_plans(overhead: Overhead, budgets: Sequence[float]) -> list[TimedPlan]:
    """The plan nearest to each of these budgets, each once."""
    if len(overhead.plans) < 2:
        return []
    found = {plan.name: plan for plan in map(overhead.nearest, sorted(budgets, reverse=True))}
    return list(found.values())


def _cells(plan: TimedPlan) -> list[str]:
    measured = f"{plan.measured:.2f} ({plan.low:.2f} to {plan.high:.2f})"
    return [plan.name, measured, f"{plan.predicted:.2f}", f"{plan.error:+.1%}"]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms"


def overhead_table(overheads: Sequence[Overhead], budgets: Sequence[float]) -> Table:
    """For a terminal."""
    table = Table(*_HEADINGS, title="step time relative to the plan that recomputes nothing")
    for column in table.columns[1:]:
        column.no_wrap, column.justify = True, "right"
    for row in overhead_rows(overheads, budgets):
        table.add_row(*row)
    return table


def overhead_summary(overheads: Sequence[Overhead], budgets: Sequence[float]) -> list[str]:
    """How many predictions are near, how well the ranks agree, and the worst errors by kernel family."""
    ran = [overhead for overhead in overheads if not overhead.failure]
    shown = [(overhead, plan) for overhead in ran for plan in shown_plans(overhead, budgets)]
    if not shown:
        return ["nothing was measured"]
    errors = [abs(plan.error) for _, plan in shown]
    all_errors = [abs(plan.error) for overhead in ran for plan in overhead.plans[1:]]
    ranks = [overhead.rank_correlation for overhead in ran]
    counts = [len(overhead.plans) for overhead in ran]
    lines = [
        f"profile: {', '.join(sorted({overhead.device for overhead in ran}))}",
        f"predicted within {_NEAR:.0%} of measured: {sum(e <= _NEAR for e in errors)} of {len(errors)} "
        f"(median {statistics.median(errors):.1%}, worst {max(errors):.1%}); of all plans timed "
        f"{sum(e <= _NEAR for e in all_errors)} of {len(all_errors)}",
        f"rank correlation over {min(counts)} to {max(counts)} plans of a model: "
        f"median {statistics.median(ranks):.2f}, minimum {min(ranks):.2f}",
    ]
    worst = sorted(shown, key=lambda found: -abs(found[1].error))[:_WORST]
    return [*lines, "worst errors, with extra time over the plan that recomputes nothing, predicted / measured:"] + [
        f"  {overhead.name}, {plan.name}: {plan.error:+.1%}; {_by_family(plan)}" for overhead, plan in worst
    ]


def _by_family(plan: TimedPlan) -> str:
    return ", ".join(
        f"{name} {predicted * 1e3:+.1f} / {measured * 1e3:+.1f} ms"
        for name, (predicted, measured) in plan.families.items()
        if predicted or measured
    )


def overhead_markdown(overheads: Sequence[Overhead], budgets: Sequence[float], lines: Sequence[str]) -> str:
    """A page: the command and versions, the table, the summary."""

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    names = " ".join(overhead.name for overhead in overheads)
    versions = f"autockpt {__version__}, torch {torch.__version__.partition('+')[0]}"
    table = [line(_HEADINGS), line(["---"] * len(_HEADINGS)), *map(line, overhead_rows(overheads, budgets))]
    bullets = [f"- {text}" for text in lines]
    head = ["# Predicted and measured step time", "", f"`autockpt bench overhead` on {names}; {versions}.", ""]
    return "\n".join([*head, *table, "", *bullets]) + "\n"
