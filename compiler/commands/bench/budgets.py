"""`autockpt bench budgets`, also as `bench SCRIPT.py:FACTORY`: measured peak and step time over budgets."""

from __future__ import annotations

from typing import Any

import click

from autockpt.commands.arguments import COUNT, Arguments, json_option, target_argument
from autockpt.commands.click_commands import Command
from autockpt.commands.console import print_lines, progress_line, stdout_console, write_json


@click.command(cls=Command)
@target_argument
@click.option("--steps", type=COUNT, default=6, show_default=True, help="How many budgets.")
@click.option("--repeats", type=COUNT, default=7, show_default=True, help="Timed steps of each candidate.")
@json_option
def command(**values: Any) -> int:
    """Measure peak and step time at budgets from the minimum peak to the fastest plan.

    Exit code 1 where a measured peak is over its budget.
    """
    return _run(Arguments(**values))


def _run(parsed: Arguments) -> int:
    from autockpt.bench import bench_budgets, budget_table, over_budget

    with progress_line() as progress:
        rows = bench_budgets(parsed.target, parsed.steps, parsed.repeats, progress)
    console = stdout_console(120, quiet=parsed.json == "-")
    console.print(budget_table(rows))
    if parsed.json:
        write_json(parsed.json, [row.as_json() for row in rows])
    over = over_budget(rows)
    print_lines(console, over)
    return 1 if over else 0
