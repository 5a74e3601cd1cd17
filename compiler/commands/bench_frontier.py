"""`autockpt bench frontier`: models measured beside what a user could do instead."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from autockpt.commands.arguments import fraction, positive
from autockpt.commands.console import Children, print_lines, progress_line, stdout_console
from autockpt.units import Progress

if TYPE_CHECKING:
    from autockpt.bench import MeasuredFrontier


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Peak and step time of plain Inductor, torch's activation_memory_budget and a checkpoint around every block, "
        "and of autockpt at each of their peaks and at its minimum peak. Exit code 1 where autockpt exceeds a peak, "
        "does not run, or has other gradients than plain Inductor."
    )
    parser.add_argument(
        "targets", nargs="+", metavar="SCRIPT.py:FACTORY", help="models, or @FILE with one of them a line"
    )
    parser.add_argument("--budgets", nargs="*", type=fraction, help="torch's (default 0.8 0.5 0.2 0.1 0.0)")
    parser.add_argument("--repeats", "--rounds", type=positive, default=15, help="timed steps of each (default 15)")
    parser.add_argument(
        "--plot", metavar="FILE|FOLDER", help="peak against time; a folder takes one .svg for each model"
    )
    parser.add_argument("--json", metavar="FILE", help="write everything measured to this file too")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables to this file too")
    parser.set_defaults(run=_run)


def _run(parsed: argparse.Namespace) -> int:
    from autockpt.bench import frontier_markdown, frontier_notes, frontier_series, frontier_summary, frontier_table
    from autockpt.render import save_plot

    plots = _plots(parsed)
    console = stdout_console(150)
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
        if parsed.json:
            Path(parsed.json).write_text(json.dumps([one.as_json() for one in frontiers], indent=1) + "\n")
    lines = frontier_summary(frontiers)
    print_lines(console, lines)
    if parsed.markdown:
        notes = [note for frontier in frontiers for note in frontier_notes(frontier)]
        arguments = f"{' '.join(f.name for f in frontiers)} --repeats {parsed.repeats}"
        Path(parsed.markdown).write_text(frontier_markdown(arguments, frontiers, [*lines, *notes]))
    return 1 if any(frontier.broken for frontier in frontiers) else 0


def _plots(parsed: argparse.Namespace) -> dict[str, str]:
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


def _in_process(target: str, parsed: argparse.Namespace, progress: Progress) -> MeasuredFrontier:
    from autockpt.bench import FRONTIER_BUDGETS, bench_frontier

    return bench_frontier(
        target, FRONTIER_BUDGETS if parsed.budgets is None else parsed.budgets, parsed.repeats, progress
    )


def _in_subprocess(target: str, parsed: argparse.Namespace, progress: Progress) -> MeasuredFrontier:
    from autockpt.bench import MeasuredFrontier
    from autockpt.errors import AutockptError

    options = ["--repeats", str(parsed.repeats)]
    options += [] if parsed.budgets is None else ["--budgets", *map(str, parsed.budgets)]
    try:
        with Children() as children:
            (row,) = children.run(target, ["bench", "frontier", *options], progress)
        return MeasuredFrontier.from_json(row)
    except AutockptError as error:
        return MeasuredFrontier(target, failure=str(error))
