"""Planning instances as files: one training step as a graph of operations, in JSON.

    n          number of operations, in the order they run
    edges      pairs [u, v] with u < v: operation v reads the result of operation u; repeats count once
    mem_kb     bytes of each operation's result, in KB (1024 bytes)
    cost       time of each operation, in any unit
    loss       the last operation of the forward; those after it are the backward
    base       optional: time of the step without recomputation, by default the sum of the costs
    solutions  optional: results to stand beside, each with budget_eff_kb (compared with live results), objective (the
               time of the step with recomputation) and optionally solve_time in seconds

Other fields, such as `fixed_kb`, are ignored. While an operation runs, the results it reads and its own live together.

`autockpt bench plan --instance`: plan an instance file at many budgets, beside what was published for it.

An instance planned at many budgets, beside what was published for it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from autockpt.errors import AutockptError, OptionError
from autockpt.passes.instances import Instance, InstanceSolution, peak_bytes, solve_instance

KB = 1024


class InstanceError(AutockptError, ValueError):
    """A file that is not a planning instance."""


@dataclass(frozen=True)
class Published:
    budget_bytes: int
    objective: float
    solve_seconds: float | None


@dataclass(frozen=True)
class InstanceFile:
    name: str
    instance: Instance
    base: float
    published: tuple[Published, ...]
    """From the largest budget to the smallest."""


def load_instance(path: str | Path) -> InstanceFile:
    path = Path(path)
    try:
        fields = json.loads(path.read_text())
    except OSError as error:
        raise InstanceError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise InstanceError(f"{path} is not JSON: {error}") from error
    try:
        return parse_instance(path.stem, fields)
    except InstanceError as error:
        raise InstanceError(f"{path}: {error}") from error


def parse_instance(name: str, fields: Any) -> InstanceFile:
    if not isinstance(fields, Mapping):
        raise InstanceError("an instance is a JSON object with n, edges, mem_kb, cost and loss")
    missing = [field for field in ("n", "edges", "mem_kb", "cost", "loss") if field not in fields]
    if missing:
        raise InstanceError(f"missing fields {missing}")
    count = _whole(fields["n"], "n", 1)
    loss = _whole(fields["loss"], "loss", 0)
    if loss >= count:
        raise InstanceError(f"loss is operation {loss}, but there are only {count}; they are numbered from 0")
    costs = _numbers(fields["cost"], "cost", count)
    nbytes = [round(size * KB) for size in _numbers(fields["mem_kb"], "mem_kb", count)]
    instance = Instance.of(costs, nbytes, _reads(fields["edges"], count), loss + 1)
    base = _numbers([fields.get("base", sum(costs))], "base", 1)[0]
    published = [_published(one) for one in _list(fields.get("solutions") or [], "solutions")]
    return InstanceFile(name, instance, base, tuple(sorted(published, key=lambda one: -one.budget_bytes)))


def _reads(edges: Any, count: int) -> list[list[int]]:
    reads: list[list[int]] = [[] for _ in range(count)]
    for place, edge in enumerate(_list(edges, "edges")):
        pair = _list(edge, f"edges[{place}]")
        if len(pair) != 2:
            raise InstanceError(f"edges[{place}] is {edge!r}; an edge is a pair [u, v]")
        source, reader = (_whole(end, f"edges[{place}]", 0) for end in pair)
        if not source < reader < count:
            raise InstanceError(f"edges[{place}] is {edge!r}; operations read earlier ones, numbered 0 to {count - 1}")
        reads[reader].append(source)
    return reads


def _published(fields: Any) -> Published:
    if not isinstance(fields, Mapping) or not {"budget_eff_kb", "objective"} <= set(fields):
        raise InstanceError("each of solutions is an object with budget_eff_kb and objective")
    budget, objective = _numbers([fields["budget_eff_kb"], fields["objective"]], "solutions", 2)
    seconds = fields.get("solve_time")
    return Published(int(budget * KB), objective, None if seconds is None else _numbers([seconds], "solve_time", 1)[0])


def _list(given: Any, name: str) -> Sequence[Any]:
    if not isinstance(given, list):
        raise InstanceError(f"{name} is {type(given).__name__}; a list is needed")
    return given


def _numbers(given: Any, name: str, count: int) -> list[float]:
    numbers = _list(given, name)
    if len(numbers) != count:
        raise InstanceError(f"{name} has {len(numbers)} entries for {count} operations")
    for place, number in enumerate(numbers):
        if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number) or number < 0:
            raise InstanceError(f"{name}[{place}] is {number!r}; a number of at least 0 is needed")
    return [float(number) for number in numbers]


def _whole(given: Any, name: str, least: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int | float) or given != int(given) or given < least:
        raise InstanceError(f"{name} is {given!r}; a whole number of at least {least} is needed")
    return int(given)


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


def render(instance: InstanceFile, rows: Sequence[PlanRow]) -> Table:
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
    path: str | Path, budgets: Sequence[str] = (), planner: Planner = solve_instance, json_path: str | None = None
) -> int:
    """Print the table, or JSON to `json_path` (`-`: instead of the table). 1 where some budget has no plan."""
    instance = load_instance(path)
    peak = peak_bytes(instance.instance, instance.instance.save_everything)
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


Planner = Callable[[Instance, int], InstanceSolution]

_FRACTIONS = (0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
"""Budgets of an instance that brings none."""


@dataclass(frozen=True)
class PlanRow:
    budget_bytes: int
    share: float
    """Of the peak without recomputation."""
    overhead: float | None
    """Extra time by time without recomputation; None where no plan fits."""
    class_bound: float | None
    every_plan_bound: float | None
    peak_bytes: int
    """Where no plan fits, the lowest that was found."""
    seconds: float
    outcome: str
    published_overhead: float | None
    published_seconds: float | None

    @property
    def gap(self) -> float | None:
        """Between overhead and the bound for every plan, in steps without recomputation."""
        if self.overhead is None or self.every_plan_bound is None:
            return None
        return max(self.overhead - self.every_plan_bound, 0.0)

    def as_json(self) -> dict[str, object]:
        values = {**asdict(self), "gap": self.gap}
        return {name: None if isinstance(v, float) and not isfinite(v) else v for name, v in values.items()}


def bench_plan(instance: InstanceFile, budgets: Sequence[int] = (), planner: Planner = solve_instance) -> list[PlanRow]:
    """A row for each budget; by default the published ones, or shares of the peak."""
    peak = peak_bytes(instance.instance, instance.instance.save_everything)
    asked = budgets or [one.budget_bytes for one in instance.published] or [int(peak * f) for f in _FRACTIONS]
    return [_row(instance, budget, peak, planner(instance.instance, budget)) for budget in asked]


def _row(instance: InstanceFile, budget: int, peak: int, solution: InstanceSolution) -> PlanRow:
    base = instance.base or 1.0
    beside = next((one for one in instance.published if one.budget_bytes == budget), None)

    return PlanRow(
        budget_bytes=budget,
        share=budget / max(peak, 1),
        overhead=None if solution.recomputed is None else solution.extra_seconds / base,
        class_bound=_over(solution.class_bound_seconds, base),
        every_plan_bound=_over(solution.every_plan_bound_seconds, base),
        peak_bytes=solution.peak_bytes,
        seconds=solution.planning_seconds,
        outcome=solution.outcome,
        published_overhead=beside.objective / base - 1 if beside else None,
        published_seconds=beside.solve_seconds if beside else None,
    )


def _over(seconds: float | None, base: float) -> float | None:
    return None if seconds is None else seconds / base
