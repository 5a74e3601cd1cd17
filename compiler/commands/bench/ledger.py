"""`autockpt bench ledger`: what the ledger of calls in flight takes of each call."""

from __future__ import annotations

from typing import Any

import click

from autockpt.commands.arguments import COUNT, Arguments, json_option
from autockpt.commands.click_commands import Command
from autockpt.commands.console import progress_line, stdout_console, write_json


@click.command(cls=Command)
@click.option("--repeats", type=COUNT, default=400, show_default=True, help="Timed steps, with the ledger and without.")
@json_option
def command(**values: Any) -> int:
    """Time what the ledger of calls in flight takes of each call, forward and backward together.

    Tiny modules on the CPU, compiled with the ledger and without it, run in turns. No kernel is compiled.
    """
    return _run(Arguments(**values))


def _run(parsed: Arguments) -> int:
    from autockpt.bench import bench_ledger, ledger_table

    with progress_line() as progress:
        rows = bench_ledger(parsed.repeats, progress)
    stdout_console(120, quiet=parsed.json == "-").print(ledger_table(rows))
    if parsed.json:
        write_json(parsed.json, [row.as_json() for row in rows])
    return 0
