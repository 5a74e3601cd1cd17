"""`autockpt bench start`: how long the first step takes in a fresh process, cold and warm."""

from __future__ import annotations

from typing import Any

import click

from autockpt.commands.arguments import BUDGET, COUNT, Arguments, json_option, targets_argument
from autockpt.commands.click_commands import Command
from autockpt.commands.console import progress_line, stdout_console, write_json


@click.command(cls=Command)
@targets_argument()
@click.option("--budget", type=BUDGET, default=0.5, show_default=True, help="As memory_budget.")
@click.option("--repeats", type=COUNT, default=1, show_default=True, help="Processes of each kind; the fastest counts.")
@json_option
def command(**values: Any) -> int:
    """Time the first step in fresh processes, with empty caches and with full ones.

    Seconds from torch.compile to the end of the first step, of plain Inductor and of autockpt, each with cache folders
    of its own; and what autockpt planned, ran dry and found in torch's caches.
    """
    return _run(Arguments(**values))


def _run(parsed: Arguments) -> int:
    from autockpt.bench import bench_start, start_table

    rows = []
    for target in parsed.targets:
        with progress_line() as progress:
            rows.append(bench_start(target, parsed.budget, parsed.repeats, progress))
    stdout_console(150, quiet=parsed.json == "-").print(start_table(rows))
    if parsed.json:
        write_json(parsed.json, [row.as_json() for row in rows])
    return 0
