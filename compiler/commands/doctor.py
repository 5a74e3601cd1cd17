"""`autockpt doctor`: what of this environment the backend needs and finds, and how frameworks in it reach it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from autockpt.commands.console import progress_line, stdout_console

if TYPE_CHECKING:
    from rich.table import Table

    from autockpt.machine import Finding


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(as_json: bool) -> int:
    """Say what was found of torch, compilers, devices, profiles, caches and frameworks, and what is missing.

    Exit code 1 where nothing can be planned and compiled.
    """
    with progress_line() as progress:
        progress("looking at torch, compilers and devices")
        from autockpt.machine import examine

        findings = list(examine())
    if as_json:
        print(json.dumps([finding.as_json() for finding in findings], indent=1))
    else:
        stdout_console(120).print(_table(findings))
        problems = sum(bool(finding.problem) for finding in findings)
        print(f"{problems} of them need attention." if problems else "Nothing is missing.")
    return int(any(finding.fatal for finding in findings))


def _table(findings: Sequence[Finding]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table("", "subject", "found")
    for finding in findings:
        mark = ("✗" if finding.fatal else "!") if finding.problem else "✓"
        lines = [finding.found, *([finding.problem] if finding.problem else [])]
        table.add_row(mark, finding.subject, escape("\n".join(lines)))
    return table
