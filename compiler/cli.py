"""`autockpt analyze | calibrate | verify | bench | devices | diff`, also as `python -m autockpt`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from autockpt.bench import Row, bench
from autockpt.commands import add_analyze, add_calibrate, add_devices, add_diff, add_verify
from autockpt.commands import bench_frontier as bench_frontier_command
from autockpt.commands import bench_overhead as bench_overhead_command
from autockpt.commands import bench_plan as bench_plan_command
from autockpt.errors import AutockptError
from autockpt.units import format_size

_BENCHES = {"plan": bench_plan_command, "frontier": bench_frontier_command, "overhead": bench_overhead_command}


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    for word, command in _BENCHES.items():
        if arguments[:2] == ["bench", word]:
            arguments[:2] = [command.NAME]
    parsed = _parser().parse_args(arguments)
    try:
        code: int = parsed.run(parsed)
    except AutockptError as error:
        print(f"autockpt: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("autockpt: stopped", file=sys.stderr)
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="autockpt", description="Activation memory in PyTorch training, planned.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    bench_plan_command.add_bench_plan(commands)
    bench_frontier_command.add_bench_frontier(commands)
    bench_overhead_command.add_bench_overhead(commands)
    add_analyze(commands)
    add_verify(commands)
    add_calibrate(commands)
    add_devices(commands)
    add_diff(commands)
    measure = commands.add_parser(
        "bench",
        help="measure budgets from floor to fastest beside plain Inductor; `bench frontier`: beside all that a user "
        "could do instead; `bench overhead`: what the cost model predicts; `bench plan`: the planner alone",
    )
    measure.add_argument("target", metavar="SCRIPT.py:FACTORY", help="a function that returns a model and its inputs")
    measure.add_argument("--steps", type=int, default=6, help="how many budgets (default 6)")
    measure.add_argument("--repeats", type=int, default=7, help="timed steps of each candidate (default 7)")
    measure.add_argument("--json", metavar="FILE", help="write the rows to this file too")
    measure.set_defaults(run=_bench)
    return parser


def _bench(parsed: argparse.Namespace) -> int:
    """Exit code 1 where a measured peak is over its budget."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting")
        rows = bench(parsed.target, parsed.steps, parsed.repeats, lambda text: progress.update(task, description=text))
    Console(width=None if sys.stdout.isatty() else 120).print(_table(rows))
    if parsed.json:
        Path(parsed.json).write_text(json.dumps([row.as_json() for row in rows], indent=1) + "\n")
    broken = [row for row in rows if row.budget_bytes is not None and row.measured_bytes > row.budget_bytes]
    for row in broken:
        console.print(f"[red]{row.name}: measured {row.measured_bytes} bytes, budget {row.budget_bytes} bytes")
    return 1 if broken else 0


def _table(rows: Sequence[Row]) -> Table:
    table = Table("", "budget", "measured", "forecast", "dynamic", "time", "recompute", "same grads", "planned")
    for column in table.columns:
        column.no_wrap = True
    for row in rows:
        planned = row.budget_bytes is not None
        table.add_row(
            row.name.removeprefix("autockpt "),
            format_size(row.budget_bytes or 0) if planned else "",
            format_size(row.measured_bytes),
            format_size(row.forecast_bytes or 0) if planned else "",
            format_size(row.dynamic_bytes),
            f"x{row.ratio:.2f}",
            f"{(row.recompute_seconds or 0) * 1e3:.1f} ms" if planned else "",
            {True: "yes", False: "NO", None: ""}[row.equal_gradients],
            f"{row.planning_seconds or 0:.2f} s" if planned else "",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
