"""`autockpt bench plan`: planners measured against time, bounds, published solutions and what others would do."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from autockpt.bench import (
    BUDGETS,
    DEPTHS,
    SIZES,
    baseline_table,
    bench_baselines,
    bench_depth,
    bench_gaps,
    bench_scale,
    depth_table,
    exponent,
    gap_summary,
    gap_table,
    run_instance,
    scale_table,
)

NAME = "bench-plan"
"""Of the hidden command that `bench plan` stands for: argparse knows no commands of two words."""


class Row(Protocol):
    def as_json(self) -> dict[str, object]: ...


R = TypeVar("R", bound=Row)


def add_bench_plan(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        NAME,
        prog="autockpt bench plan",
        description="Without arguments: planning time over graph size, beside torch's own partitioner. "
        "With models: the gap of their plans to what no plan can beat.",
        fromfile_prefix_chars="@",
    )
    parser.add_argument(
        "targets", nargs="*", metavar="SCRIPT.py:FACTORY", help="models whose gaps to print, or @FILE with one a line"
    )
    parser.add_argument("--budget", nargs="+", help="budgets: fractions; of an instance shares of its peak, or KB")
    parser.add_argument("--instance", metavar="FILE", help="a problem as JSON (format: autockpt.instance)")
    parser.add_argument("--baselines", metavar="SCRIPT.py:FACTORY", help="what others would do with this model")
    parser.add_argument("--depth", metavar="SCRIPT.py:FACTORY", help="the floor over depth; the factory takes `layers`")
    parser.add_argument("--layers", nargs="+", type=int, default=DEPTHS, help="depths (default 8 to 128)")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="nodes (default 1,000 to 50,000)")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds after which torch is stopped (default 300)")
    parser.add_argument("--json", metavar="FILE", help="write the rows to this file too; - prints them instead")
    parser.set_defaults(run=_run)


def _run(parsed: argparse.Namespace) -> int:
    if parsed.instance:
        return run_instance(parsed.instance, parsed.budget or (), json_path=parsed.json)
    if parsed.targets:
        budgets = [float(budget) for budget in parsed.budget or BUDGETS]
        gaps = _with_progress(lambda show: list(bench_gaps(parsed.targets, budgets, show)))
        _print(gaps, gap_table(gaps), parsed.json, gap_summary(gaps))
    elif parsed.baselines:
        baselines = _with_progress(lambda show: bench_baselines(parsed.baselines, show))
        _print(baselines, baseline_table(baselines), parsed.json)
        return 1 if any(row.behind for row in baselines) else 0
    elif parsed.depth:
        depths = _with_progress(lambda show: list(bench_depth(parsed.depth, parsed.layers, show)))
        _print(depths, depth_table(depths), parsed.json, f"bytes beyond grow as depth to the {exponent(depths):.2f}")
    else:
        sizes = _with_progress(lambda show: bench_scale(show, parsed.sizes, parsed.limit))
        _print(sizes, scale_table(sizes), parsed.json)
    return 0


def _with_progress(work: Callable[[Callable[[str], None]], list[R]]) -> list[R]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting")
        return work(lambda text: progress.update(task, description=text))


def _print(rows: Sequence[Row], table: Table, json_path: str | None, summary: str = "") -> None:
    text = json.dumps([row.as_json() for row in rows], indent=1)
    if json_path == "-":
        print(text)
        return
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(table)
    if summary:
        console.print(summary)
    if json_path:
        Path(json_path).write_text(text + "\n")
