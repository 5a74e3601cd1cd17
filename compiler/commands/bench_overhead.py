"""`autockpt bench overhead`: how well the cost model knows what a plan costs, on real steps."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from autockpt.bench import Overhead, bench_overhead, overhead_markdown, overhead_summary, overhead_table
from autockpt.commands.console import Show, positive, print_lines, run_apart, shown
from autockpt.errors import AutockptError
from autockpt.options import COSTS

NAME = "bench-overhead"
"""Of the hidden command that `bench overhead` stands for."""


def add_bench_overhead(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        NAME,
        prog="autockpt bench overhead",
        description="Step time of plans from floor to fastest over that of the plan that recomputes nothing, predicted "
        "and measured, and how well their ranks agree. Exit code 1 where a model did not run.",
        fromfile_prefix_chars="@",
    )
    parser.add_argument("targets", nargs="+", metavar="SCRIPT.py:FACTORY", help="models, or @FILE with one a line")
    parser.add_argument("--plans", type=positive, default=10, help="budgets from fastest to floor (default 10)")
    parser.add_argument("--repeats", type=positive, default=15, help="timed steps of each (default 15)")
    parser.add_argument(
        "--show", nargs="+", type=float, default=[0.1, 0.4, 0.7], help="budgets in the table (default 0.1 0.4 0.7)"
    )
    parser.add_argument("--device", help="profile to predict with (default: the one of this machine)")
    parser.add_argument(
        "--cost", choices=COSTS, default="profile", help='"profile", or "measured": operators timed one by one'
    )
    parser.add_argument("--json", metavar="FILE", help="write everything measured to this file too")
    parser.add_argument("--markdown", metavar="FILE", help="write the table to this file too")
    parser.set_defaults(run=_run)


def _run(parsed: argparse.Namespace) -> int:
    console = Console(width=None if sys.stdout.isatty() else 150)
    measure = _here if len(parsed.targets) == 1 else _apart
    overheads: list[Overhead] = []
    for target in parsed.targets:
        with shown(target) as show:
            overheads.append(measure(target, parsed, show))
        # After every model: what took minutes is not lost with the next one.
        if parsed.json:
            Path(parsed.json).write_text(json.dumps([one.as_json() for one in overheads], indent=1) + "\n")
    console.print(overhead_table(overheads, parsed.show))
    lines = overhead_summary(overheads, parsed.show)
    print_lines(console, lines)
    if parsed.markdown:
        Path(parsed.markdown).write_text(overhead_markdown(overheads, parsed.show, lines))
    return 1 if any(overhead.trouble for overhead in overheads) else 0


def _here(target: str, parsed: argparse.Namespace, show: Show) -> Overhead:
    options = {"cost": parsed.cost} | ({"device": parsed.device} if parsed.device else {})
    return bench_overhead(target, parsed.plans, parsed.repeats, show, **options)


def _apart(target: str, parsed: argparse.Namespace, show: Show) -> Overhead:
    options = ["--plans", str(parsed.plans), "--repeats", str(parsed.repeats), "--cost", parsed.cost]
    options += ["--device", parsed.device] if parsed.device else []
    try:
        return Overhead.from_json(run_apart(target, ["bench", "overhead", *options], show))
    except AutockptError as error:
        return Overhead(target, trouble=str(error))
