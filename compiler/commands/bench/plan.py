"""`autockpt bench plan`: the planner alone, without running a model: its speed, its gaps, what each part of it adds.

Every value is checked before any work begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from autockpt.commands.arguments import COUNT, OUTPUT, SECONDS, TARGET, Arguments, targets_argument
from autockpt.commands.click_commands import Command
from autockpt.commands.console import print_lines, progress_line, stdout_console, write_json
from autockpt.units import Progress

if TYPE_CHECKING:
    from rich.table import Table


class JsonRow(Protocol):
    def as_json(self) -> dict[str, object]: ...


R = TypeVar("R", bound=JsonRow)
_NEEDS = {"budget": ({"targets", "instance"}, "models or --instance"), "layers": ({"depth"}, "--depth")}
"""By the option: what it has a meaning with, any of these, and that in words."""


@click.command(cls=Command)
@targets_argument(required=False)
@click.option(
    "--budget",
    multiple=True,
    metavar="BUDGET...",
    help="Fractions between the minimum peak, 0.0, and the fastest plan's, 1.0 (default: 0.1 0.3 0.5 0.7 0.9); "
    "of an instance shares of its peak, or KB.",
)
@click.option("--ablate", is_flag=True, help="Of the models: what changes where a generator of plans is left out.")
@click.option(
    "--instance", metavar="FILE", help="A published problem as JSON (see autockpt.bench.planner.instance_file)."
)
@click.option("--baselines", type=TARGET, metavar="SCRIPT.py:FACTORY", help="What others would save of this model.")
@click.option(
    "--depth",
    type=TARGET,
    metavar="SCRIPT.py:FACTORY",
    help="The minimum peak over depth; the factory takes `layers`.",
)
@click.option("--layers", multiple=True, type=COUNT, metavar="COUNT...", help="Depths (default: 8 to 128).")
@click.option("--sizes", multiple=True, type=COUNT, metavar="COUNT...", help="Nodes (default: 1,000 to 50,000).")
@click.option("--limit", type=SECONDS, default=300.0, show_default=True, help="Seconds after which torch is stopped.")
@click.option("--json", type=OUTPUT, metavar="FILE", help="Write the rows to this file too; - prints them instead.")
def command(**values: Any) -> int:
    """Measure the planner alone, without running a model.

    Without targets: planning time over graph size, beside torch's own partitioner. With targets: the gap of their plans
    to what no plan can beat. @FILE stands for targets, one a line.
    """
    return _run(Arguments(**values))


def _fractions(texts: Sequence[str]) -> list[float]:
    """Budgets of models. Not checked when they are read: of an instance they have another form."""
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


def _run(parsed: Arguments) -> int:
    from autockpt.errors import OptionError

    chosen = [name for name in ("targets", "instance", "baselines", "depth") if getattr(parsed, name)]
    if len(chosen) > 1:
        raise OptionError(f"{' and '.join(chosen)} together; bench plan does one thing at a time")
    if parsed.ablate and not parsed.targets:
        raise OptionError("--ablate needs models: autockpt bench plan SCRIPT.py:FACTORY --ablate")
    for option, (others, words) in _NEEDS.items():
        if getattr(parsed, option) and others.isdisjoint(chosen):
            raise OptionError(f"--{option} needs {words}")
    if parsed.sizes and chosen:
        raise OptionError("--sizes is for planning time over graph size, without models or files")
    by_choice = {"targets": _gaps, "instance": _instance, "baselines": _baselines, "depth": _depth}
    run = _ablation if parsed.ablate else by_choice[chosen[0]] if chosen else _scale
    return run(parsed)


def _gaps(parsed: Arguments) -> int:
    from autockpt.bench import PLAN_BUDGETS, bench_gaps, gap_summary, gap_table

    budgets = _fractions(parsed.budget or ()) or PLAN_BUDGETS
    rows = _with_progress(lambda progress: list(bench_gaps(parsed.targets, budgets, progress)))
    _print(rows, gap_table(rows), parsed.json, [gap_summary(rows)])
    return 0


def _ablation(parsed: Arguments) -> int:
    from autockpt.bench import PLAN_BUDGETS, ablation_table, bench_ablation

    budgets = _fractions(parsed.budget or ()) or PLAN_BUDGETS
    rows = _with_progress(lambda progress: list(bench_ablation(parsed.targets, budgets, progress)))
    _print(rows, ablation_table(rows), parsed.json)
    return 0


def _instance(parsed: Arguments) -> int:
    """Exit code 1 where a planner finds no plan for a budget."""
    from autockpt.bench import bench_instance, instance_notes, instance_table, load_instance, parse_budgets

    file = load_instance(parsed.instance)
    budgets = parse_budgets(parsed.budget or (), file)
    rows = _with_progress(lambda progress: list(bench_instance(file, budgets, progress)))
    notes = instance_notes(rows)
    _print(rows, instance_table(file, rows), parsed.json, notes)
    return 1 if notes else 0


def _baselines(parsed: Arguments) -> int:
    """Exit code 1 where our plan within a baseline's peak is worse than the baseline."""
    from autockpt.bench import baseline_table, bench_baselines

    rows = _with_progress(lambda progress: bench_baselines(parsed.baselines, progress))
    _print(rows, baseline_table(rows), parsed.json)
    return 1 if any(row.behind for row in rows) else 0


def _depth(parsed: Arguments) -> int:
    from autockpt.bench import DEPTHS, bench_depth, depth_table, exponent

    rows = _with_progress(lambda progress: list(bench_depth(parsed.depth, parsed.layers or DEPTHS, progress)))
    summary = f"bytes beyond parameters and gradients grow as depth to the power of {exponent(rows):.2f}"
    _print(rows, depth_table(rows), parsed.json, [summary] if len(rows) > 1 else [])
    return 0


def _scale(parsed: Arguments) -> int:
    from autockpt.bench import SIZES, bench_scale, scale_table

    rows = _with_progress(lambda progress: bench_scale(progress, parsed.sizes or SIZES, parsed.limit))
    _print(rows, scale_table(rows), parsed.json)
    return 0


def _with_progress(work: Callable[[Progress], list[R]]) -> list[R]:
    with progress_line() as progress:
        return work(progress)


def _print(rows: Sequence[JsonRow], table: Table, json_path: str | None, lines: Sequence[str] = ()) -> None:
    console = stdout_console(150, quiet=json_path == "-")
    console.print(table)
    print_lines(console, lines)
    if json_path:
        write_json(json_path, [row.as_json() for row in rows])
