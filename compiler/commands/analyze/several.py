"""Several targets of `autockpt analyze`: one process and one row of a table for each.

In a process of its own no target finds what an earlier one left in torch's caches, and the seconds and the memory of a
row are what `autockpt analyze` of that target alone takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from autockpt.commands.analyze.table import analysis_markdown, analysis_table
from autockpt.commands.arguments import Arguments
from autockpt.commands.click_commands import TYPED
from autockpt.commands.console import Children, progress_line, stdout_console, write_json
from autockpt.files import write_file
from autockpt.units import Progress


def analyze_several(parsed: Arguments) -> list[dict[str, Any]]:
    """The reports, after their table was printed and written; `{"target", "error"}` where a target did not run."""
    reports: list[dict[str, Any]] = []
    with progress_line(log=parsed.log) as progress, Children() as children:
        for number, target in enumerate(parsed.targets, 1):
            reports.append(_report(children, target, shared_options(parsed), number, parsed, progress))
            # After every target: whatever ends a run of an hour leaves the rows that it has made.
            _write(parsed, reports)
    stdout_console(160, quiet=parsed.json == "-").print(analysis_table(reports))
    if parsed.json == "-":
        write_json("-", reports)
    return reports


def _write(parsed: Arguments, reports: list[dict[str, Any]]) -> None:
    if parsed.json and parsed.json != "-":
        write_json(parsed.json, reports)
    if parsed.markdown:
        typed = click.get_current_context().meta[TYPED]
        write_file(Path(parsed.markdown), analysis_markdown(f"analyze {typed}", reports).encode())


def _report(
    children: Children, target: str, command: list[str], number: int, parsed: Arguments, progress: Progress
) -> dict[str, Any]:
    from autockpt.errors import AutockptError

    where = f"{number} of {len(parsed.targets)}, {target}"
    progress(where)
    try:
        report: dict[str, Any] = children.run(target, command, lambda text: progress(f"{where}: {text}"))
    except AutockptError as error:
        return {"target": target, "error": str(error)}
    return report


def shared_options(parsed: Arguments, without: Sequence[str] = ()) -> list[str]:
    """The options of this call that hold for each target."""
    words = ["analyze", "--log", "--accumulate", str(parsed.accumulate)]
    # Its rows would be shown nowhere in the table.
    words += ["--what-if" if parsed.what_if else "--no-what-if"]
    words += ["--set", *(f"{name}={value!r}" for name, value in parsed.set)] if parsed.set else []
    for name in ("device", "budget", "optimizer", "world_size", "rank"):
        if getattr(parsed, name) is not None and name not in without:
            words += [f"--{name.replace('_', '-')}", str(getattr(parsed, name))]
    words += ["--offload", "true" if parsed.offload is True else parsed.offload] if parsed.offload else []
    return words + [f"--{name.replace('_', '-')}" for name in ("lower", "max_batch") if getattr(parsed, name)]
