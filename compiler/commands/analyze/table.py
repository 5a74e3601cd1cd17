"""Analyses of several targets as a table, for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from autockpt.units import format_seconds, format_size

if TYPE_CHECKING:
    from rich.table import Table

_HEADINGS = (
    "model",
    "parameters",
    "inputs",
    "peak",
    "minimum peak",
    "fastest plan",
    "step",
    "verdict",
    "CPU s",
    "memory",
)
_Report = Mapping[str, Any]


def cells(report: _Report) -> list[str]:
    name = report["target"].rpartition(":")[2]
    if "error" in report:
        return [name, *["-"] * (len(_HEADINGS) - 4), report["error"], "-", "-"]
    return [
        name,
        _count(report["parameters"]),
        ", ".join("×".join(map(str, one["shape"])) for one in report["inputs"]),
        format_size(report["peak_bytes"]),
        format_size(report["min_peak_bytes"]),
        format_size(report["fastest_bytes"]),
        format_seconds(report["step_seconds"]),
        report["verdict"],
        f"{report['resources']['cpu_seconds']:.0f}",
        format_size(report["resources"]["memory_bytes"]),
    ]


def analysis_table(reports: Sequence[_Report]) -> Table:
    """The table for a terminal; in red what did not run, in yellow what does not fit."""
    from rich.table import Table

    shown = Table(*_HEADINGS)
    for column in shown.columns:
        column.overflow = "fold"
        if column.header not in ("model", "inputs", "verdict"):
            column.no_wrap, column.justify = True, "right"
    for report in reports:
        style = "red" if "error" in report else None if report["fits"] else "yellow"
        shown.add_row(*cells(report), style=style)
    return shown


def analysis_markdown(arguments: str, reports: Sequence[_Report]) -> str:
    """A page with versions and command, and the table."""
    import torch

    from autockpt import __version__

    versions = f"autockpt {__version__}, torch {torch.__version__}: `autockpt {arguments}`"
    rows = [list(_HEADINGS), ["---"] * len(_HEADINGS), *(cells(report) for report in reports)]
    body = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return (
        f"{versions}\n\nPeak, minimum peak, fastest plan and step are of the step on the device. CPU seconds, user and "
        f"system, and memory are of the analysis, which runs on the host.\n\n{body}\n"
    )


def _count(number: int) -> str:
    for unit, size in (("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return str(number)
