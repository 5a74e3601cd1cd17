"""`autockpt bench overhead`: how well the cost model predicts the step time of plans, on real steps."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from autockpt.commands.arguments import fraction, positive
from autockpt.commands.console import Children, print_lines, progress_line, stdout_console
from autockpt.units import Progress

if TYPE_CHECKING:
    from autockpt.bench import Overhead


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Step time of plans from the minimum peak to the fastest, relative to the plan that recomputes nothing: "
        "predicted, measured, and how well their ranks agree. Exit code 1 where a model did not run."
    )
    parser.add_argument("targets", nargs="+", metavar="SCRIPT.py:FACTORY", help="models, or @FILE with one a line")
    parser.add_argument(
        "--plans", type=positive, default=10, help="budgets from the fastest plan to the minimum peak (default 10)"
    )
    parser.add_argument("--repeats", type=positive, default=15, help="timed steps of each (default 15)")
    parser.add_argument(
        "--show", nargs="+", type=fraction, default=[0.1, 0.4, 0.7], help="budgets in the table (default 0.1 0.4 0.7)"
    )
    parser.add_argument("--device", help="profile to predict with (default: the one of this machine)")
    parser.add_argument(
        "--cost",
        choices=("profile", "measured"),
        default="profile",
        help='"profile", or "measured": operators timed one by one',
    )
    parser.add_argument("--json", metavar="FILE", help="write everything measured to this file too")
    parser.add_argument("--markdown", metavar="FILE", help="write the table to this file too")
    parser.set_defaults(run=_run)


def _run(parsed: argparse.Namespace) -> int:
    from autockpt.bench import overhead_markdown, overhead_summary, overhead_table

    console = stdout_console(150)
    measure = _in_process if len(parsed.targets) == 1 else _in_subprocess
    overheads: list[Overhead] = []
    for target in parsed.targets:
        with progress_line(target, log=True) as progress:
            overheads.append(measure(target, parsed, progress))
        # Written after every model: what took minutes is not lost if the next one fails.
        if parsed.json:
            Path(parsed.json).write_text(json.dumps([one.as_json() for one in overheads], indent=1) + "\n")
    console.print(overhead_table(overheads, parsed.show))
    lines = overhead_summary(overheads, parsed.show)
    print_lines(console, lines)
    if parsed.markdown:
        Path(parsed.markdown).write_text(overhead_markdown(overheads, parsed.show, lines))
    return 1 if any(overhead.failure for overhead in overheads) else 0


def _in_process(target: str, parsed: argparse.Namespace, progress: Progress) -> Overhead:
    from autockpt.bench import bench_overhead

    options = {"cost": parsed.cost} | ({"device": parsed.device} if parsed.device else {})
    return bench_overhead(target, parsed.plans, parsed.repeats, progress, **options)


def _in_subprocess(target: str, parsed: argparse.Namespace, progress: Progress) -> Overhead:
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
