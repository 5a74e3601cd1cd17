"""`autockpt bench frontier`: models in, measured against what a user could do instead, and an exit code."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from autockpt.commands.arguments import positive
from autockpt.commands.console import Children, print_lines, progress_line, stdout_console
from autockpt.units import Progress

if TYPE_CHECKING:
    from autockpt.bench import Frontier


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Peak and step time of plain Inductor, torch's activation_memory_budget and a checkpoint around every block, "
        "and of autockpt at each of their peaks and at its minimum peak. Exit code 1 where autockpt exceeds a peak, "
        "does not run, or has other gradients than plain Inductor."
    )
    parser.add_argument(
        "targets", nargs="+", metavar="SCRIPT.py:FACTORY", help="models, or @FILE with one of them a line"
    )
    parser.add_argument("--budgets", nargs="*", type=_share, help="torch's (default 0.8 0.5 0.2 0.1 0.0)")
    parser.add_argument("--repeats", "--rounds", type=positive, default=15, help="timed steps of each (default 15)")
    parser.add_argument(
        "--plot", metavar="FILE|FOLDER", help="peak against time; a folder takes one .svg for each model"
    )
    parser.add_argument("--json", metavar="FILE", help="write everything measured to this file too")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables to this file too")
    parser.set_defaults(run=_run)


def _share(text: str) -> float:
    share = float(text)
    if not 0.0 <= share <= 1.0:
        raise argparse.ArgumentTypeError(f"{text} is not within 0.0..1.0, which torch's budget is")
    return share


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
        if not frontier.trouble:
            console.print(frontier_table(frontier))
        print_lines(console, frontier_notes(frontier))
        if target in plots and not frontier.trouble:
            save_plot(
                plots[target],
                frontier_series(frontier),
                title=target,
                x="peak, MiB",
                y="step time, ratio to plain Inductor",
            )
        # After every model: what took minutes is not lost with the next one.
        if parsed.json:
            Path(parsed.json).write_text(json.dumps([one.as_json() for one in frontiers], indent=1) + "\n")
    lines = frontier_summary(frontiers)
    print_lines(console, lines)
    if parsed.markdown:
        noted = [note for frontier in frontiers for note in frontier_notes(frontier)]
        what = f"{' '.join(f.name for f in frontiers)} --repeats {parsed.repeats}"
        Path(parsed.markdown).write_text(frontier_markdown(what, frontiers, [*lines, *noted]))
    return 1 if any(frontier.broken for frontier in frontiers) else 0


def _plots(parsed: argparse.Namespace) -> dict[str, str]:
    """The file of each target's plot, checked before minutes of measuring."""
    if not parsed.plot:
        return {}
    from autockpt.render import check_plot

    given = Path(parsed.plot)
    if len(parsed.targets) == 1 and given.suffix and not given.is_dir():
        check_plot(parsed.plot)
        return {parsed.targets[0]: parsed.plot}
    files = {target: str(given / f"{target.rpartition(':')[2]}.svg") for target in parsed.targets}
    check_plot(next(iter(files.values())))
    given.mkdir(parents=True, exist_ok=True)
    return files


def _in_process(target: str, parsed: argparse.Namespace, progress: Progress) -> Frontier:
    from autockpt.bench import BUDGETS, bench_frontier

    return bench_frontier(target, BUDGETS if parsed.budgets is None else parsed.budgets, parsed.repeats, progress)


def _in_subprocess(target: str, parsed: argparse.Namespace, progress: Progress) -> Frontier:
    from autockpt.bench import Frontier
    from autockpt.errors import AutockptError

    options = ["--repeats", str(parsed.repeats)]
    options += [] if parsed.budgets is None else ["--budgets", *map(str, parsed.budgets)]
    try:
        with Children() as children:
            (row,) = children.run(target, ["bench", "frontier", *options], progress)
        return Frontier.from_json(row)
    except AutockptError as error:
        return Frontier(target, trouble=str(error))
