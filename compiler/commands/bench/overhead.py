"""`autockpt bench overhead`: how well the cost model predicts the step time of plans, on real steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autockpt.commands.arguments import COUNT, FRACTION, Arguments, json_option, markdown_option, targets_argument
from autockpt.commands.click_commands import Command
from autockpt.commands.console import Children, print_lines, progress_line, stdout_console, write_json
from autockpt.files import write_file
from autockpt.units import Progress

if TYPE_CHECKING:
    from autockpt.bench import Overhead

_SHOWN = (0.1, 0.4, 0.7)


@click.command(cls=Command)
@targets_argument()
@click.option(
    "--plans", type=COUNT, default=10, show_default=True, help="Budgets from the fastest plan to the minimum peak."
)
@click.option("--repeats", type=COUNT, default=15, show_default=True, help="Timed steps of each.")
@click.option(
    "--show", multiple=True, type=FRACTION, metavar="FRACTION...", help="Budgets in the table (default: 0.1 0.4 0.7)."
)
@click.option("--device", help="Profile to predict with (default: the one of this machine).")
@click.option(
    "--cost",
    type=click.Choice(("profile", "measured")),
    default="profile",
    show_default=True,
    help="measured: operators timed one by one.",
)
@json_option
@markdown_option
def command(**values: Any) -> int:
    """Compare the recomputation time that the cost model predicts with what real steps take.

    Step time of plans from the minimum peak to the fastest, relative to the plan that recomputes nothing: predicted,
    measured, and how well their ranks agree. @FILE stands for targets, one a line.

    Exit code 1 where a model did not run.
    """
    return _run(Arguments(**{**values, "show": values["show"] or _SHOWN}))


def _run(parsed: Arguments) -> int:
    from autockpt.bench import overhead_markdown, overhead_summary, overhead_table
    from autockpt.options import Options

    if parsed.device:
        Options.parse({"device": parsed.device})
    console = stdout_console(150, quiet=parsed.json == "-")
    measure = _in_process if len(parsed.targets) == 1 else _in_subprocess
    overheads: list[Overhead] = []
    for target in parsed.targets:
        with progress_line(target, log=True) as progress:
            overheads.append(measure(target, parsed, progress))
        # Written after every model: what took minutes is not lost if the next one fails.
        if parsed.json and parsed.json != "-":
            write_json(parsed.json, [one.as_json() for one in overheads])
    if parsed.json == "-":
        write_json("-", [one.as_json() for one in overheads])
    console.print(overhead_table(overheads, parsed.show))
    lines = overhead_summary(overheads, parsed.show)
    print_lines(console, lines)
    if parsed.markdown:
        write_file(Path(parsed.markdown), overhead_markdown(overheads, parsed.show, lines).encode())
    return 1 if any(overhead.failure for overhead in overheads) else 0


def _in_process(target: str, parsed: Arguments, progress: Progress) -> Overhead:
    from autockpt.bench import bench_overhead

    options = {"cost": parsed.cost} | ({"device": parsed.device} if parsed.device else {})
    return bench_overhead(target, parsed.plans, parsed.repeats, progress, **options)


def _in_subprocess(target: str, parsed: Arguments, progress: Progress) -> Overhead:
    from autockpt.bench import Overhead
    from autockpt.errors import AutockptError

    options = ["--plans", str(parsed.plans), "--repeats", str(parsed.repeats), "--cost", parsed.cost]
    options += ["--device", parsed.device] if parsed.device else []
    try:
        with Children() as children:
            (row,) = children.run(target, ["bench", "overhead", *options], progress)
        return Overhead.from_json(row)
    except AutockptError as error:
        return Overhead(target, failure=str(error))
