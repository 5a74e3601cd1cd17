"""`autockpt bench frontier`: models in, measured against what a user could do instead, and an exit code."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from autockpt.bench_frontier import BUDGETS, bench_frontier
from autockpt.frontier_report import markdown, notes, series, summary, table
from autockpt.frontier_rows import Frontier
from autockpt.plot import check_plot, save_plot

NAME = "bench-frontier"
"""Of the hidden command that `bench frontier` stands for."""
Show = Callable[[str], None]


def add_bench_frontier(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        NAME,
        prog="autockpt bench frontier",
        description="Peak and step time of plain Inductor, torch's activation_memory_budget and a checkpoint around "
        "every block, and of autockpt at each of their peaks and at its floor. Exit code 1 where autockpt does not "
        "hold a peak, does not run, or has other gradients than plain Inductor.",
        fromfile_prefix_chars="@",
    )
    parser.add_argument(
        "targets", nargs="+", metavar="SCRIPT.py:FACTORY", help="models, or @FILE with one of them a line"
    )
    parser.add_argument(
        "--budgets", nargs="*", type=_share, default=list(BUDGETS), help="torch's (default 0.8 0.5 0.2 0.1 0.0)"
    )
    parser.add_argument("--repeats", "--rounds", type=_count, default=15, help="timed steps of each (default 15)")
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


def _count(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of rounds from 1 on")
    return int(text)


def _run(parsed: argparse.Namespace) -> int:
    plots = _plots(parsed)
    console = Console(width=None if sys.stdout.isatty() else 150)
    measure = _here if len(parsed.targets) == 1 else _apart
    frontiers = []
    for target in parsed.targets:
        with _progress(target) as show:
            frontier = measure(target, parsed, show)
        frontiers.append(frontier)
        if not frontier.trouble:
            console.print(table(frontier))
        _print_lines(console, notes(frontier))
        if target in plots and not frontier.trouble:
            save_plot(
                plots[target], series(frontier), title=target, x="peak, MiB", y="step time, ratio to plain Inductor"
            )
        # After every model: what took minutes is not lost with the next one.
        if parsed.json:
            Path(parsed.json).write_text(json.dumps([one.as_json() for one in frontiers], indent=1) + "\n")
    lines = summary(frontiers)
    _print_lines(console, lines)
    if parsed.markdown:
        noted = [note for frontier in frontiers for note in notes(frontier)]
        what = f"{' '.join(f.name for f in frontiers)} --repeats {parsed.repeats}"
        Path(parsed.markdown).write_text(markdown(what, frontiers, [*lines, *noted]))
    return 1 if any(frontier.broken for frontier in frontiers) else 0


def _print_lines(console: Console, lines: list[str]) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _plots(parsed: argparse.Namespace) -> dict[str, str]:
    """The file of each target's plot, checked before minutes of measuring."""
    if not parsed.plot:
        return {}
    given = Path(parsed.plot)
    if len(parsed.targets) == 1 and given.suffix and not given.is_dir():
        check_plot(parsed.plot)
        return {parsed.targets[0]: parsed.plot}
    files = {target: str(given / f"{target.rpartition(':')[2]}.svg") for target in parsed.targets}
    check_plot(next(iter(files.values())))
    given.mkdir(parents=True, exist_ok=True)
    return files


@contextmanager
def _progress(target: str) -> Iterator[Show]:
    """A line that moves on a terminal; elsewhere a line for each thing begun, which `_apart` reads."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: print(f"{target}: {text}", file=sys.stderr, flush=True)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(target)
        yield lambda text: progress.update(task, description=f"{target}: {text}")


def _here(target: str, parsed: argparse.Namespace, show: Show) -> Frontier:
    return bench_frontier(target, parsed.budgets, parsed.repeats, show)


def _apart(target: str, parsed: argparse.Namespace, show: Show) -> Frontier:
    """In a process of its own: nothing that one model leaves behind can be held against another."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "frontier.json"
        command = [sys.executable, "-m", "autockpt", "bench", "frontier", target, "--json", str(file)]
        command += ["--repeats", str(parsed.repeats), "--budgets", *map(str, parsed.budgets)]
        last = deque(["no message"], maxlen=1)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
            for line in child.stderr or ():
                last.append(line.strip() or last[-1])
                if line.startswith(f"{target}: "):
                    show(line.removeprefix(f"{target}: ").strip())
        if not file.exists():
            return Frontier(target, trouble=f"did not run: {last[-1]}")
        (fields,) = json.loads(file.read_text())
    return Frontier.from_json(fields)
