"""The table of `autockpt verify --offload`, for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from rich.table import Table

from autockpt import __version__
from autockpt.measure.offload.verdict import OffloadVerdict
from autockpt.units import format_size

_HEADINGS = ("model", "budget", "bytes", "measured", "used", "offloaded", "to the host", "measured", "gradients")


def offload_table(verdicts: Sequence[OffloadVerdict]) -> Table:
    """Broken promises in red."""
    shown = Table(*_HEADINGS)
    for column in shown.columns[1:]:
        column.no_wrap, column.justify = True, "right"
    for verdict in verdicts:
        shown.add_row(*_cells(verdict), style="red" if verdict.broken else None)
    return shown


def _cells(verdict: OffloadVerdict) -> list[str]:
    name = verdict.target.rpartition(":")[2]
    if not verdict.measured_bytes:
        return [name, *["-"] * (len(_HEADINGS) - 1)]
    return [
        name,
        str(verdict.fraction),
        format_size(verdict.budget_bytes),
        format_size(verdict.measured_bytes),
        f"{verdict.measured_bytes / verdict.budget_bytes:.0%}",
        str(verdict.tensors),
        format_size(verdict.host_bytes),
        format_size(verdict.host_measured_bytes),
        verdict.gradients,
    ]


def offload_lines(verdicts: Sequence[OffloadVerdict]) -> list[str]:
    """Counts, then a line for every note and broken promise."""
    ran = [verdict for verdict in verdicts if verdict.measured_bytes]
    lines = [
        f"offloaded: {sum(v.tensors > 0 for v in ran)} of {len(ran)}",
        f"measured within the budget: {sum('budget' not in v.broken for v in ran)} of {len(verdicts)}",
        f"gradients bitwise equal to plain Inductor's: {sum(v.gradients == 'equal' for v in ran)} of {len(ran)}",
    ]
    for verdict in verdicts:
        name = f"{verdict.target.rpartition(':')[2]} at {verdict.fraction}"
        lines += [f"{name}: {verdict.note}"] if verdict.note else []
        lines += [f"{name}: BROKEN: {', '.join(verdict.broken)}"] if verdict.broken else []
    return lines


def offload_markdown(command: str, verdicts: Sequence[OffloadVerdict]) -> str:
    """A page with versions and command, the table and the lines."""
    versions = f"autockpt {__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    rows = [list(_HEADINGS), ["---"] * len(_HEADINGS), *(_cells(verdict) for verdict in verdicts)]
    body = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    lines = "\n".join(f"- {line}" for line in offload_lines(verdicts))
    return f"{versions}: `autockpt verify {command}`\n\n{body}\n\n{lines}\n"
