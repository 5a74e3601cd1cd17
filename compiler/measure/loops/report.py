"""The table and the summary of `autockpt verify --step`, for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from rich.table import Table

from autockpt import __version__
from autockpt.measure.loops.verify_step import LOSS_TOLERANCE, StepVerdict
from autockpt.measure.verify import TOLERANCE
from autockpt.units import format_size

_HEADINGS = (
    "loop", "budget", "bytes", "forecast", "measured, step by step", "used", "plain", "gradients", "recomputed",
    "time / plain", "broken",
)  # fmt: skip


_LOSSES = "loss over 20 steps"


def _headings(verdicts: Sequence[StepVerdict]) -> list[str]:
    """With the loss, where one was compared."""
    shown = list(_HEADINGS)
    if any(one.losses for one in verdicts):
        shown.insert(shown.index("gradients") + 1, _LOSSES)
    return shown


def _cells(one: StepVerdict, headings: Sequence[str]) -> list[str]:
    rank = "" if one.rank is None else f", rank {one.rank}"
    name = one.target.rpartition(":")[2] + rank
    if not one.measured_bytes:
        return [name, one.budget, *["-"] * (len(headings) - 3), ", ".join(one.broken)]
    losses = [one.losses or "-"] if _LOSSES in headings else []
    return [
        name,
        one.budget,
        format_size(one.budget_bytes),
        format_size(one.forecast_bytes),
        ", ".join(format_size(peak) for peak in one.measured_bytes),
        f"{one.used:.0%}",
        format_size(one.plain_bytes),
        one.gradients,
        *losses,
        f"{one.recompute_share:.1%}",
        f"{one.time_ratio:.2f}",
        ", ".join(one.broken),
    ]


def step_table(verdicts: Sequence[StepVerdict]) -> Table:
    """The table for a terminal, broken promises in red."""
    headings = _headings(verdicts)
    shown = Table(*headings)
    for one in verdicts:
        shown.add_row(*_cells(one, headings), style="red" if one.broken else None)
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
        f"in the first two as well: {sum(max(one.measured_bytes, default=1) <= one.budget_bytes for one in verdicts)}",
        f"at least 90 % of the budget used where anything is recomputed: "
        f"{sum('unused' not in one.broken for one in recomputing)} of {len(recomputing)}",
        f"gradients bitwise equal to plain Inductor's: {equal} of {count}, or as different as its own repetitions: "
        f"{equal + noise}, within {TOLERANCE:g}: {holds('gradients')}",
    ]
    if any(one.rank is not None for one in verdicts):
        lines.append(f"ranks with equal graphs run equal plans: {holds('plans')} of {count}")
    if any(one.losses for one in verdicts):
        compared, equal = [one for one in verdicts if one.losses], sum(one.losses == "equal" for one in verdicts)
        lines.append(f"losses bitwise equal: {equal} of {len(compared)}, within {LOSS_TOLERANCE:g}: {holds('losses')}")
    for one in verdicts:
        rank = "" if one.rank is None else f" on rank {one.rank}"
        name = " at ".join(filter(None, (one.target.rpartition(":")[2], one.budget))) + rank
        lines += [f"{name}: BROKEN: {', '.join(one.broken)}"] if one.broken else []
        lines += [f"{name}: {one.note}"] if one.note else []
    return lines


def step_markdown(arguments: str, verdicts: Sequence[StepVerdict], lines: Sequence[str]) -> str:
    """A page with versions and command, the table and the summary."""
    versions = f"autockpt {__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    headings = _headings(verdicts)
    rows = [headings, ["---"] * len(headings), *(_cells(one, headings) for one in verdicts)]
    body = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    listed = "\n".join(f"- {line}" for line in lines)
    return f"{versions}: `autockpt verify {arguments}`\n\n{body}\n\n{listed}\n"
