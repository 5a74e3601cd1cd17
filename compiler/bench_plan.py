"""`autockpt bench plan --instance`: plan an instance file at many budgets, beside what was published for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from math import isfinite
from pathlib import Path

from rich.console import Console
from rich.table import Table

from autockpt.errors import OptionError
from autockpt.instance import KB, Instance, load_instance
from autockpt.passes.plan_task import plan
from autockpt.passes.task import peak_bytes
from autockpt.plan_rows import Planner, PlanRow, bench_plan


def parse_budgets(given: Sequence[str], peak: int) -> list[int]:
    """Shares of the peak (`0.5`) or KB (`500000`): what has a point is a share."""
    budgets = []
    for text in given:
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf"):
            raise OptionError(f"budget {text!r}; give a share of the peak such as 0.5, or KB such as 500000")
        budgets.append(int(number * peak) if "." in text else int(number) * KB)
    return budgets


def render(instance: Instance, rows: Sequence[PlanRow]) -> Table:
    table = Table(title=f"{instance.name}: overhead in % of the step without recomputation")
    for name in ("budget", "share", "overhead", "class bound", "every plan", "gap", "of overhead", "peak", "planned"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("published", justify="right", no_wrap=True)
    for row in rows:
        fits = row.overhead is not None
        share = row.gap / row.overhead if row.gap is not None and row.overhead else None
        late = "" if row.published_seconds is None else f" ({row.published_seconds:.0f} s)"
        table.add_row(
            f"{row.budget_bytes // KB} KB",
            f"{row.share:.2f}",
            _percent(row.overhead) if fits else "[red]no plan",
            _percent(row.class_bound),
            _percent(row.every_plan_bound),
            _percent(row.gap),
            "" if share is None else f"{100 * share:.0f} %",
            f"{row.peak_bytes // KB} KB",
            f"{row.seconds:.1f} s",
            _percent(row.published_overhead) + late,
        )
    return table


def run_instance(
    path: str | Path, budgets: Sequence[str] = (), planner: Planner = plan, json_path: str | None = None
) -> int:
    """Print the table, or JSON to `json_path` (`-`: instead of the table). 1 where some budget has no plan."""
    instance = load_instance(path)
    peak = peak_bytes(instance.task, instance.task.keep_everything)
    rows = bench_plan(instance, parse_budgets(budgets, peak), planner)
    text = json.dumps([row.as_json() for row in rows], indent=1)
    if json_path == "-":
        print(text)
    else:
        console = Console(width=None if sys.stdout.isatty() else 140)
        console.print(render(instance, rows))
        for row in rows:
            if row.overhead is None:
                console.print(
                    f"{row.budget_bytes // KB} KB: {row.outcome} Lowest peak found: {row.peak_bytes // KB} KB."
                )
    if json_path and json_path != "-":
        Path(json_path).write_text(text + "\n")
    return 1 if any(row.overhead is None for row in rows) else 0


def _percent(share: float | None) -> str:
    return "" if share is None else "none fits" if not isfinite(share) else f"{100 * share:.2f}"
