"""`autockpt bench plan`: the planner alone, without running a model: its speed, its gaps, what each part of it adds.

Every value is checked before any work begins.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from autockpt.commands.arguments import positive
from autockpt.commands.console import print_lines, progress_line, stdout_console
from autockpt.units import Progress

if TYPE_CHECKING:
    from rich.table import Table


class JsonRow(Protocol):
    def as_json(self) -> dict[str, object]: ...


R = TypeVar("R", bound=JsonRow)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Without arguments: planning time over graph size, beside torch's own partitioner. "
        "With models: the gap of their plans to what no plan can beat."
    )
    parser.add_argument(
        "targets", nargs="*", metavar="SCRIPT.py:FACTORY", help="models whose gaps to print, or @FILE with one a line"
    )
    parser.add_argument(
        "--budget",
        nargs="+",
        help="fractions between the minimum peak, 0.0, and the fastest plan's, 1.0 (default 0.1 0.3 0.5 0.7 0.9); "
        "of an instance shares of its peak, or KB",
    )
    parser.add_argument(
        "--ablate", action="store_true", help="of the models: what changes where a generator of plans is left out"
    )
    parser.add_argument(
        "--instance", metavar="FILE", help="a published problem as JSON (format: autockpt.bench.instance_file)"
    )
    parser.add_argument("--baselines", metavar="SCRIPT.py:FACTORY", help="what others would save of this model")
    parser.add_argument(
        "--depth", metavar="SCRIPT.py:FACTORY", help="the minimum peak over depth; the factory takes `layers`"
    )
    parser.add_argument("--layers", nargs="+", type=positive, help="depths (default 8 to 128)")
    parser.add_argument("--sizes", nargs="+", type=positive, help="nodes (default 1,000 to 50,000)")
    parser.add_argument(
        "--limit", type=_seconds, default=300.0, help="seconds after which torch is stopped (default 300)"
    )
    parser.add_argument("--json", metavar="FILE", help="write the rows to this file too; - prints them instead")
    parser.set_defaults(run=_run)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not 0.0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of seconds")
    return seconds


def _fractions(texts: Sequence[str]) -> list[float]:
    """Budgets of models. argparse cannot check them: of an instance they have another form."""
    from autockpt.errors import OptionError

    budgets = []
    for text in texts:
        try:
            budget = float(text)
        except ValueError:
            budget = -1.0
        if not 0.0 <= budget <= 1.0:
            raise OptionError(f"budget {text!r} is not a fraction from 0.0, the minimum peak, to 1.0, the fastest plan")
        budgets.append(budget)
    return budgets


def _run(parsed: argparse.Namespace) -> int:
    from autockpt.errors import OptionError

    chosen = [name for name in ("targets", "instance", "baselines", "depth") if getattr(parsed, name)]
    if len(chosen) > 1:
        raise OptionError(f"{' and '.join(chosen)} together; bench plan does one thing at a time")
    if parsed.ablate and not parsed.targets:
        raise OptionError("--ablate needs models: autockpt bench plan SCRIPT.py:FACTORY --ablate")
    benches = {"targets": _gaps, "instance": _instance, "baselines": _baselines, "depth": _depth}
    run = _ablation if parsed.ablate else benches[chosen[0]] if chosen else _scale
    return run(parsed)


def _gaps(parsed: argparse.Namespace) -> int:
    from autockpt.bench import PLAN_BUDGETS, bench_gaps, gap_summary, gap_table

    budgets = _fractions(parsed.budget or ()) or PLAN_BUDGETS
    rows = _with_progress(lambda progress: list(bench_gaps(parsed.targets, budgets, progress)))
    _print(rows, gap_table(rows), parsed.json, [gap_summary(rows)])
    return 0


def _ablation(parsed: argparse.Namespace) -> int:
    from autockpt.bench import PLAN_BUDGETS, ablation_table, bench_ablation

    budgets = _fractions(parsed.budget or ()) or PLAN_BUDGETS
    rows = _with_progress(lambda progress: list(bench_ablation(parsed.targets, budgets, progress)))
    _print(rows, ablation_table(rows), parsed.json)
    return 0


def _instance(parsed: argparse.Namespace) -> int:
    """Exit code 1 where a planner finds no plan for a budget."""
    from autockpt.bench import bench_instance, instance_notes, instance_table, load_instance, parse_budgets

    file = load_instance(parsed.instance)
    budgets = parse_budgets(parsed.budget or (), file)
    rows = _with_progress(lambda progress: list(bench_instance(file, budgets, progress)))
    notes = instance_notes(rows)
    _print(rows, instance_table(file, rows), parsed.json, notes)
    return 1 if notes else 0


def _baselines(parsed: argparse.Namespace) -> int:
    """Exit code 1 where our plan within a baseline's peak is worse than the baseline."""
    from autockpt.bench import baseline_table, bench_baselines

    rows = _with_progress(lambda progress: bench_baselines(parsed.baselines, progress))
    _print(rows, baseline_table(rows), parsed.json)
    return 1 if any(row.behind for row in rows) else 0


def _depth(parsed: argparse.Namespace) -> int:
    from autockpt.bench import DEPTHS, bench_depth, depth_table, exponent

    rows = _with_progress(lambda progress: list(bench_depth(parsed.depth, parsed.layers or DEPTHS, progress)))
    summary = f"bytes beyond parameters and gradients grow as depth to the power of {exponent(rows):.2f}"
    _print(rows, depth_table(rows), parsed.json, [summary] if len(rows) > 1 else [])
    return 0


def _scale(parsed: argparse.Namespace) -> int:
    from autockpt.bench import SIZES, bench_scale, scale_table

    rows = _with_progress(lambda progress: bench_scale(progress, parsed.sizes or SIZES, parsed.limit))
    _print(rows, scale_table(rows), parsed.json)
    return 0


def _with_progress(work: Callable[[Progress], list[R]]) -> list[R]:
    with progress_line() as progress:
        return work(progress)


def _print(rows: Sequence[JsonRow], table: Table, json_path: str | None, lines: Sequence[str] = ()) -> None:
    text = json.dumps([row.as_json() for row in rows], indent=1)
    if json_path == "-":
        print(text)
        return
    console = stdout_console(150)
    console.print(table)
    print_lines(console, lines)
    if json_path:
        Path(json_path).write_text(text + "\n")
