"""`autockpt bench budgets | frontier | overhead | plan`: what is measured, and against what.

`bench budgets`, also as `bench SCRIPT.py:FACTORY`, is defined here; the others have a module `bench_*` each.
"""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from pathlib import Path

from autockpt.commands.arguments import positive
from autockpt.commands.console import print_lines, progress_line, stdout_console

BENCHES = {
    "budgets": "measured peak and step time at budgets from the minimum peak to the fastest plan",
    "frontier": "measured peak and step time beside plain Inductor, torch's own budget and checkpointed blocks",
    "overhead": "the recomputation time that the cost model predicts beside what real steps take",
    "plan": "the planner alone: planning time, optimality gaps, ablation, published instances; runs no model",
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
    from autockpt.bench import bench_budgets, budget_table, over_budget

    with progress_line() as progress:
        rows = bench_budgets(parsed.target, parsed.steps, parsed.repeats, progress)
    console = stdout_console(120)
    console.print(budget_table(rows))
    if parsed.json:
        Path(parsed.json).write_text(json.dumps([row.as_json() for row in rows], indent=1) + "\n")
    over = over_budget(rows)
    print_lines(console, over)
    return 1 if over else 0
