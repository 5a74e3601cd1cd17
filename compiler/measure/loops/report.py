"""The table and the summary of `autockpt verify --step`, for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from rich.table import Table

from autockpt import __version__
from autockpt.measure.loops.verify_step import StepVerdict
from autockpt.measure.verify import TOLERANCE
from autockpt.units import format_size

_HEADINGS = (
    "loop", "budget", "bytes", "forecast", "measured, step by step", "used", "plain", "gradients", "recomputed",
    "time / plain", "broken",
)  # fmt: skip


def _cells(one: StepVerdict) -> list[str]:
    name = one.target.rpartition(":")[2]
    if not one.measured_bytes:
        return [name, one.budget, *["-"] * (len(_HEADINGS) - 3), ", ".join(one.broken)]
    return [
        name,
        one.budget,
        format_size(one.budget_bytes),
        format_size(one.forecast_bytes),
        ", ".join(format_size(peak) for peak in one.measured_bytes),
        f"{one.used:.0%}",
        format_size(one.plain_bytes),
        one.gradients,
        f"{one.recompute_share:.1%}",
        f"{one.time_ratio:.2f}",
        ", ".join(one.broken),
    ]


def step_table(verdicts: Sequence[StepVerdict]) -> Table:
    """The table for a terminal, broken promises in red."""
    shown = Table(*_HEADINGS)
    for one in verdicts:
        shown.add_row(*_cells(one), style="red" if one.broken else None)
    return shown


def step_summary(verdicts: Sequence[StepVerdict]) -> list[str]:
    """Counts over all verdicts, then a line for every broken promise and every note."""
    count = len(verdicts)

    def holds(promise: str) -> int:
        return sum(bool(one.measured_bytes) and promise not in one.broken for one in verdicts)

    recomputing = [one for one in verdicts if one.recompute_share]
    equal, noise = (sum(one.gradients.startswith(word) for one in verdicts) for word in ("equal", "noise"))
    lines = [
        f"measured within the budget from the third step on: {holds('budget')} of {count}, "
        f"in the first two as well: {holds('first steps')}",
        f"at least 90 % of the budget used where anything is recomputed: "
        f"{sum('unused' not in one.broken for one in recomputing)} of {len(recomputing)}",
        f"gradients bitwise equal to plain Inductor's: {equal} of {count}, or as different as its own repetitions: "
        f"{equal + noise}, within {TOLERANCE:g}: {holds('gradients')}",
    ]
    for one in verdicts:
        name = " at ".join(filter(None, (one.target.rpartition(":")[2], one.budget)))
        lines += [f"{name}: BROKEN: {', '.join(one.broken)}"] if one.broken else []
        lines += [f"{name}: {one.note}"] if one.note else []
    return lines


def step_markdown(arguments: str, verdicts: Sequence[StepVerdict], lines: Sequence[str]) -> str:
    """A page with versions and command, the table and the summary."""
    versions = f"autockpt {__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    rows = [list(_HEADINGS), ["---"] * len(_HEADINGS), *(_cells(one) for one in verdicts)]
    body = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    listed = "\n".join(f"- {line}" for line in lines)
    return f"{versions}: `autockpt verify {arguments}`\n\n{body}\n\n{listed}\n"
