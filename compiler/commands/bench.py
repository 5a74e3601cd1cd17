"""`autockpt bench budgets | frontier | overhead | plan`: what is measured, and against what.

`bench budgets`, also as `bench SCRIPT.py:FACTORY`, is defined here; the others have a module `bench_*` each.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from autockpt.commands.arguments import positive
from autockpt.commands.console import print_lines, progress_line, stdout_console
from autockpt.units import format_size

if TYPE_CHECKING:
    from rich.table import Table

    from autockpt.bench import Row

BENCHES = {
    "budgets": "measured peak and step time at budgets from the minimum peak to the fastest plan",
    "frontier": "measured peak and step time beside plain Inductor, torch's own budget and checkpointed blocks",
    "overhead": "the recomputation time that the cost model predicts beside what real steps take",
    "plan": "the planner alone: planning time, optimality gaps, published instances; runs no model",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    benches = parser.add_subparsers(required=True, metavar="BENCH")
    for name, summary in BENCHES.items():
        bench = benches.add_parser(name, help=summary, fromfile_prefix_chars="@")
        add = _add_budgets if name == "budgets" else import_module(f"autockpt.commands.bench_{name}").add_arguments
        add(bench)


def _add_budgets(parser: argparse.ArgumentParser) -> None:
    parser.description = "Exit code 1 where a measured peak is over its budget."
    parser.add_argument("target", metavar="SCRIPT.py:FACTORY", help="a function that returns a model and its inputs")
    parser.add_argument("--steps", type=positive, default=6, help="how many budgets (default 6)")
    parser.add_argument("--repeats", type=positive, default=7, help="timed steps of each candidate (default 7)")
    parser.add_argument("--json", metavar="FILE", help="write the rows to this file too")
    parser.set_defaults(run=_run_budgets)


def _run_budgets(parsed: argparse.Namespace) -> int:
    from autockpt.bench import bench

    with progress_line() as progress:
        rows = bench(parsed.target, parsed.steps, parsed.repeats, progress)
    console = stdout_console(120)
    console.print(_table(rows))
    if parsed.json:
        Path(parsed.json).write_text(json.dumps([row.as_json() for row in rows], indent=1) + "\n")
    over = [row for row in rows if row.budget_bytes is not None and row.measured_bytes > row.budget_bytes]
    print_lines(
        console, [f"{row.name}: measured {row.measured_bytes} bytes, budget {row.budget_bytes} bytes" for row in over]
    )
    return 1 if over else 0


def _table(rows: Sequence[Row]) -> Table:
    from rich.table import Table

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
