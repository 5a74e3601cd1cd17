"""`autockpt analyze --all-stages`: every rank of one pipeline, each in a process of its own, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from autockpt.commands.analyze.several import shared_options
from autockpt.commands.arguments import Arguments
from autockpt.commands.console import Children, progress_line, stdout_console, write_json
from autockpt.units import format_seconds, format_size

if TYPE_CHECKING:
    from rich.table import Table

_HEADINGS = ("stage", "rank", "parameters", "peak", "minimum peak", "fastest plan", "saved", "step", "verdict")
_Report = Mapping[str, Any]


def analyze_stages(parsed: Arguments) -> list[dict[str, Any]]:
    """The reports of all ranks of the pipeline that the chosen rank is in, first stage first."""
    from autockpt.errors import AutockptError

    if parsed.world_size is None or len(parsed.targets) != 1:
        raise click.UsageError("--all-stages needs one target and --world-size", click.get_current_context())
    (target,) = parsed.targets
    first = parsed.rank or 0
    with progress_line(log=parsed.log) as progress, Children() as children:

        def report(rank: int) -> dict[str, Any]:
            progress(f"rank {rank}")
            command = [*shared_options(parsed, without=("rank",)), "--rank", str(rank)]
            found: dict[str, Any] = children.run(target, command, lambda text: progress(f"rank {rank}: {text}"))
            return found

        reports = [report(first)]
        ranks = reports[0]["rank"]["pipeline"]
        if not ranks:
            raise AutockptError(f"{target} has no stage of a pipeline on rank {first}: leave --all-stages out")
        reports += [report(rank) for rank in ranks if rank != first]
    reports.sort(key=lambda report: report["rank"]["stages"])
    stdout_console(160, quiet=parsed.json == "-").print(stages_table(reports))
    if parsed.json:
        write_json(parsed.json, reports)
    return reports


def stages_table(reports: Sequence[_Report]) -> Table:
    """A row for each rank; in yellow what does not fit."""
    from rich.table import Table

    shown = Table(*_HEADINGS)
    for column in shown.columns:
        column.overflow = "fold"
        if column.header != "verdict":
            column.no_wrap, column.justify = True, "right"
    for report in reports:
        shown.add_row(*_cells(report), style=None if report["fits"] else "yellow")
    return shown


def _cells(report: _Report) -> list[str]:
    rank = report["rank"]
    return [
        ", ".join(map(str, rank["stages"])),
        str(rank["rank"]),
        f"{rank['parameters']:,}",
        *(format_size(report[figure]) for figure in ("peak_bytes", "min_peak_bytes", "fastest_bytes")),
        format_size(report["step"]["saved_bytes"]),
        format_seconds(report["step_seconds"]),
        report["verdict"],
    ]
