"""The table and the summary of `autockpt verify`, for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from rich.table import Table

from autockpt import __version__
from autockpt.measure.verify import TOLERANCE, Verdict
from autockpt.units import format_size

_HEADINGS = ("model", "budget", "bytes", "forecast", "", "compiled", "", "measured", "used", "gradients", "recomputed")


def cells(verdict: Verdict) -> list[str]:
    name = verdict.target.rpartition(":")[2]
    if not verdict.measured_bytes:
        return [name, verdict.budget, *["-"] * (len(_HEADINGS) - 2)]
    compiled_error = verdict.compiled_error
    share = verdict.measured_bytes / verdict.budget_bytes
    return [
        name,
        verdict.budget,
        format_size(verdict.budget_bytes),
        format_size(verdict.forecast_bytes),
        f"{verdict.forecast_error:+.1%}",
        format_size(verdict.compiled_bytes) if verdict.compiled_bytes is not None else "unknown",
        f"{compiled_error:+.2%}" if compiled_error is not None else "",
        format_size(verdict.measured_bytes),
        f"{share:.0%}" + (" OVER" if "budget" in verdict.broken else ""),
        verdict.gradients + (" DIFFERENT" if "gradients" in verdict.broken else ""),
        f"{verdict.recompute_share:.1%}",
    ]


def verify_table(verdicts: Sequence[Verdict]) -> Table:
    """The table for a terminal, broken promises in red."""
    shown = Table(*_HEADINGS)
    for column in shown.columns[1:]:
        column.no_wrap, column.justify = True, "right"
    for verdict in verdicts:
        shown.add_row(*cells(verdict), style="red" if verdict.broken else None)
    return shown


def verify_summary(verdicts: Sequence[Verdict]) -> list[str]:
    """Counts over all verdicts, then a line for every reason, note and broken promise."""
    ran = [verdict for verdict in verdicts if verdict.measured_bytes]
    near = sum(abs(v.forecast_error) <= 0.03 for v in ran), sum(abs(v.forecast_error) <= 0.06 for v in ran)
    errors = [v.compiled_error for v in ran if v.compiled_error is not None]
    exact = sum(abs(error) <= 0.01 for error in errors)
    held = sum("budget" not in v.broken for v in ran)
    equal, noise = sum(v.gradients == "equal" for v in ran), sum(v.gradients.startswith("noise") for v in ran)
    refining, compiling = sum(v.refine_seconds for v in ran), sum(v.compile_seconds for v in ran)
    lines = [
        f"measured within the budget: {held} of {len(verdicts)}",
        f"forecast within 3 % of measured: {near[0]} of {len(ran)}, within 6 %: {near[1]} of {len(ran)}",
        f"compiled within 1 % of measured: {exact} of {len(errors)}",
        f"gradients bitwise equal to plain Inductor's: {equal} of {len(ran)}, "
        f"or as different as its own repetitions: {equal + noise}, "
        f"within {TOLERANCE:g}: {sum('gradients' not in v.broken for v in ran)} of {len(ran)}",
        f"dry runs: {sum(v.dry_runs for v in ran)} for {len(ran)} steps; "
        f"those of plans not taken took {refining:.0f} of {compiling:.0f} s of compilation",
    ]
    for v in verdicts:
        name = f"{v.target.rpartition(':')[2]} at {v.budget}"
        lines += [f"{name}: {text}" for text in (v.reason, v.note) if text]
        if abs(v.compiled_error or 0.0) > 0.01 and v.workspace:
            lines.append(f"{name}: workspace of {v.workspace}")
        if v.broken:
            lines.append(f"{name}: BROKEN: {', '.join(v.broken)}")
    return lines


def falling_peaks(verdicts: Sequence[Verdict]) -> list[str]:
    """Peaks that fall by more than 1 % from one budget to the next larger one, which they should not."""
    found = []
    for target in dict.fromkeys(verdict.target for verdict in verdicts):
        ran = sorted((v for v in verdicts if v.target == target and v.measured_bytes), key=lambda v: v.budget_bytes)
        for less, more in pairwise(ran):
            for what in ("forecast_bytes", "compiled_bytes", "measured_bytes"):
                low, high = getattr(less, what) or 0, getattr(more, what) or 0
                if high < 0.99 * low:
                    name = f"{target.rpartition(':')[2]}: from {less.budget} to {more.budget}"
                    found.append(f"{name} {what} FALLS from {format_size(low)} to {format_size(high)}")
    return found


def verify_markdown(arguments: str, verdicts: Sequence[Verdict], lines: Sequence[str]) -> str:
    """A page with versions and command, the table and the summary."""
    versions = f"autockpt {__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    rows = [list(_HEADINGS), ["---"] * len(_HEADINGS), *(cells(verdict) for verdict in verdicts)]
    body = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{versions}: `autockpt verify {arguments}`\n\n{body}\n\n" + "\n".join(f"- {line}" for line in lines) + "\n"
