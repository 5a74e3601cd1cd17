"""`autockpt bench frontier`: models measured beside what a user could do instead."""

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
    from autockpt.bench import MeasuredFrontier


@click.command(cls=Command)
@targets_argument()
@click.option(
    "--budgets",
    multiple=True,
    type=FRACTION,
    metavar="FRACTION...",
    help="torch's budgets (default: 0.8 0.5 0.2 0.1 0.0).",
)
@click.option("--repeats", "--rounds", type=COUNT, default=15, show_default=True, help="Timed steps of each.")
@click.option("--plot", metavar="FILE|FOLDER", help="Peak against time; a folder takes one .svg for each model.")
@json_option
@markdown_option
def command(**values: Any) -> int:
    """Measure models beside what a user could do instead.

    Peak and step time of plain Inductor, torch's activation_memory_budget and a checkpoint around every block, and of
    autockpt at each of their peaks and at its minimum peak. @FILE stands for targets, one a line.

    Exit code 1 where autockpt exceeds a peak, does not run, or has other gradients than plain Inductor.
    """
    return _run(Arguments(**values))


def _run(parsed: Arguments) -> int:
    from autockpt.bench import frontier_markdown, frontier_notes, frontier_series, frontier_summary, frontier_table
    from autockpt.render import save_plot

    plots = _plots(parsed)
    console = stdout_console(150, quiet=parsed.json == "-")
    measure = _in_process if len(parsed.targets) == 1 else _in_subprocess
    frontiers = []
    for target in parsed.targets:
        with progress_line(target, log=True) as progress:
            frontier = measure(target, parsed, progress)
        frontiers.append(frontier)
        if not frontier.failure:
            console.print(frontier_table(frontier))
        print_lines(console, frontier_notes(frontier))
        if target in plots and not frontier.failure:
            save_plot(
                plots[target],
                frontier_series(frontier),
                title=target,
                x="peak, MiB",
                y="step time, ratio to plain Inductor",
            )
        # Written after every model: what took minutes is not lost if the next one fails.
        if parsed.json and parsed.json != "-":
            write_json(parsed.json, [one.as_json() for one in frontiers])
    if parsed.json == "-":
        write_json("-", [one.as_json() for one in frontiers])
    lines = frontier_summary(frontiers)
    print_lines(console, lines)
    if parsed.markdown:
        notes = [note for frontier in frontiers for note in frontier_notes(frontier)]
        arguments = f"{' '.join(f.name for f in frontiers)} --repeats {parsed.repeats}"
        write_file(Path(parsed.markdown), frontier_markdown(arguments, frontiers, [*lines, *notes]).encode())
    return 1 if any(frontier.broken for frontier in frontiers) else 0


def _plots(parsed: Arguments) -> dict[str, str]:
    """The file of each target's plot, checked before minutes of measuring."""
    if not parsed.plot:
        return {}
    from autockpt.render import check_plot

    path = Path(parsed.plot)
    if len(parsed.targets) == 1 and path.suffix and not path.is_dir():
        check_plot(parsed.plot)
        return {parsed.targets[0]: parsed.plot}
    files = {target: str(path / f"{target.rpartition(':')[2]}.svg") for target in parsed.targets}
    check_plot(next(iter(files.values())))
    path.mkdir(parents=True, exist_ok=True)
    return files


def _in_process(target: str, parsed: Arguments, progress: Progress) -> MeasuredFrontier:
    from autockpt.bench import FRONTIER_BUDGETS, bench_frontier

    return bench_frontier(target, parsed.budgets or FRONTIER_BUDGETS, parsed.repeats, progress)


def _in_subprocess(target: str, parsed: Arguments, progress: Progress) -> MeasuredFrontier:
    from autockpt.bench import MeasuredFrontier
    from autockpt.errors import AutockptError

    options = ["--repeats", str(parsed.repeats)]
    options += ["--budgets", *map(str, parsed.budgets)] if parsed.budgets else []
    try:
        with Children() as children:
            (row,) = children.run(target, ["bench", "frontier", *options], progress)
        return MeasuredFrontier.from_json(row)
    except AutockptError as error:
        return MeasuredFrontier(target, failure=str(error))
