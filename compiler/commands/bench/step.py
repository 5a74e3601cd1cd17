"""`autockpt bench step`: training loops side by side, such as blocks compiled one by one and the model in one graph."""

from __future__ import annotations

from typing import Any

import click

from autockpt.commands.arguments import BUDGET, COUNT, Arguments, json_option, settings_option, targets_argument
from autockpt.commands.click_commands import Command
from autockpt.commands.console import print_lines, progress_line, stdout_console, write_json


@click.command(cls=Command)
@targets_argument()
@click.option(
    "--budget",
    type=BUDGET,
    help="For each of them, as memory_budget (default: the middle between the highest minimum peak and the peak of the "
    "last loop by plain Inductor).",
)
@click.option("--rounds", type=COUNT, default=30, show_default=True, help="Timed steps of each loop.")
@settings_option
@json_option
def command(**values: Any) -> int:
    """Compare training loops at the same budget: minimum peaks, peaks, and step times in interleaved rounds.

    FACTORY as of `verify --step` (examples/steps/loops.py). Ratios are to the last of the loops. Exit code 1 where a
    measured peak is over its budget.
    """
    return _run(Arguments(**values))


def _run(parsed: Arguments) -> int:
    from autockpt.measure import compare_loops, compared_table

    with progress_line() as progress:
        loops = compare_loops(parsed.targets, parsed.budget, parsed.rounds, progress, dict(parsed.set))
    console = stdout_console(150, quiet=parsed.json == "-")
    console.print(compared_table(loops))
    over = [f"{one.target}: over its budget" for one in loops if not one.fits]
    print_lines(console, over)
    if parsed.json:
        write_json(parsed.json, [one.as_json() for one in loops])
    return 1 if over else 0
