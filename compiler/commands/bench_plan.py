"""`autockpt bench plan`: planners measured against time, bounds, published solutions and what others would do."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from autockpt.commands.console import progress_line, stdout_console
from autockpt.units import Progress

if TYPE_CHECKING:
    from rich.table import Table


class Row(Protocol):
    def as_json(self) -> dict[str, object]: ...


R = TypeVar("R", bound=Row)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Without arguments: planning time over graph size, beside torch's own partitioner. "
        "With models: the gap of their plans to what no plan can beat."
    )
    parser.add_argument(
        "targets", nargs="*", metavar="SCRIPT.py:FACTORY", help="models whose gaps to print, or @FILE with one a line"
    )
    parser.add_argument("--budget", nargs="+", help="budgets: fractions; of an instance shares of its peak, or KB")
    parser.add_argument("--instance", metavar="FILE", help="a problem as JSON (format: autockpt.instance)")
    parser.add_argument("--baselines", metavar="SCRIPT.py:FACTORY", help="what others would do with this model")
    parser.add_argument("--depth", metavar="SCRIPT.py:FACTORY", help="the floor over depth; the factory takes `layers`")
    parser.add_argument("--layers", nargs="+", type=int, help="depths (default 8 to 128)")
    parser.add_argument("--sizes", nargs="+", type=int, help="nodes (default 1,000 to 50,000)")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds after which torch is stopped (default 300)")
    parser.add_argument("--json", metavar="FILE", help="write the rows to this file too; - prints them instead")
    parser.set_defaults(run=_run)


def _run(parsed: argparse.Namespace) -> int:
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
        depths = _with_progress(lambda show: list(bench_depth(parsed.depth, parsed.layers or DEPTHS, show)))
        _print(depths, depth_table(depths), parsed.json, f"bytes beyond grow as depth to the {exponent(depths):.2f}")
    else:
        sizes = _with_progress(lambda show: bench_scale(show, parsed.sizes or SIZES, parsed.limit))
        _print(sizes, scale_table(sizes), parsed.json)
    return 0


def _with_progress(work: Callable[[Progress], list[R]]) -> list[R]:
    with progress_line() as progress:
        return work(progress)


def _print(rows: Sequence[Row], table: Table, json_path: str | None, summary: str = "") -> None:
    text = json.dumps([row.as_json() for row in rows], indent=1)
    if json_path == "-":
        print(text)
        return
    console = stdout_console(150)
    console.print(table)
    if summary:
        console.print(summary)
    if json_path:
        Path(json_path).write_text(text + "\n")
