"""`autockpt bench plan --instance`: published instances, by the planner of `torch.compile` and by a search for them.

Two rows for each budget. *shipped planner* is what `torch.compile(backend="autockpt")` runs (`passes.planners.decide`),
on the instance as a joint graph for a runtime that fuses nothing. `passes.instances.to_graph` poses it exactly: same
operations, costs, bytes and order, and the forecast peak of every plan is the instance's, less the constant static
bytes. *instance search* is annealing, the stage program and A* (`passes.instances.search`), which no compilation runs.
The overhead and the peak of both are replayed by the instance's own accounting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf, isfinite

from rich.table import Table

from autockpt.bench.planner.instance_file import KB, InstanceFile
from autockpt.cost_models import load_profile
from autockpt.errors import OptionError
from autockpt.passes.instances import (
    Instance,
    InstanceSolution,
    extra_seconds,
    graph_of,
    peak_bytes,
    recomputations_of,
    solve_instance,
)
from autockpt.passes.planners import decide, pose
from autockpt.passes.problem import Budget, Lowering, Setup
from autockpt.units import Progress

SHIPPED, SEARCH = "shipped planner", "instance search"
_SHARES = (0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
"""Budgets for an instance without published ones, as shares of its peak without recomputation."""


@dataclass(frozen=True)
class InstanceRow:
    """One planner at one budget. Overheads and bounds are shares of the step's time without recomputation."""

    planner: str
    budget_bytes: int
    share: float
    """Of the peak without recomputation."""
    overhead: float | None
    """None where no plan was found that fits."""
    peak_bytes: int
    """Where no plan fits, the smallest peak of any plan found."""
    planning_seconds: float
    outcome: str
    class_bound: float | None = None
    """No plan of the interval program's class has less overhead; infinite where none fits."""
    every_plan_bound: float | None = None
    """No plan at all has less overhead; infinite where none fits."""
    published_overhead: float | None = None
    published_seconds: float | None = None

    @property
    def gap(self) -> float | None:
        """Between the overhead and the bound for every plan."""
        if self.overhead is None or self.every_plan_bound is None:
            return None
        return max(self.overhead - self.every_plan_bound, 0.0)

    def as_json(self) -> dict[str, object]:
        fields = {**asdict(self), "gap": self.gap}
        return {name: None if isinstance(v, float) and not isfinite(v) else v for name, v in fields.items()}


InstancePlanner = Callable[[Instance, int], InstanceSolution]


def plan_as_shipped(instance: Instance, budget_bytes: int) -> InstanceSolution:
    """The plan of `decide`, replayed by the instance's accounting.

    The instance's costs, scaled to a step of one second, are all that its operations take. So the device must not add
    to them: fused loops, whose traffic it would price, do not occur, and page faults of large results are turned off.
    """
    graph, costs = graph_of(instance)
    seconds = {name: cost / max(instance.step_seconds, 1e-300) for name, cost in costs.items()}
    device = replace(load_profile("cpu"), fresh_above_bytes=0)
    setup = Setup(Budget(total_bytes=budget_bytes), device, lowering=Lowering.EAGER)
    static_bytes = pose(graph, setup).static_bytes
    decision = decide(graph, replace(setup, budget=Budget(total_bytes=budget_bytes + static_bytes)), seconds)
    recomputed = recomputations_of(instance, decision.plan)
    peak = peak_bytes(instance, recomputed)
    fits = peak <= budget_bytes
    return InstanceSolution(
        recomputed=recomputed if fits else None,
        extra_seconds=extra_seconds(instance, recomputed) if fits else inf,
        peak_bytes=peak,
        class_bound_seconds=None,
        every_plan_bound_seconds=None,
        planning_seconds=decision.planning_seconds,
        outcome=decision.outcome.value,
    )


_PLANNERS: dict[str, InstancePlanner] = {SHIPPED: plan_as_shipped, SEARCH: solve_instance}


def bench_instance(file: InstanceFile, budgets: Sequence[int], progress: Progress) -> Iterator[InstanceRow]:
    """Rows of every planner at every budget; by default the published budgets, or shares of the peak."""
    published = [one.budget_bytes for one in file.published]
    for budget in budgets or published or [int(_peak(file) * share) for share in _SHARES]:
        for name, planner in _PLANNERS.items():
            progress(f"{file.name} within {budget // KB} KB: {name}")
            yield _row(name, file, budget, planner(file.instance, budget))


def _peak(file: InstanceFile) -> int:
    """Without recomputation."""
    return peak_bytes(file.instance, file.instance.save_everything)


def _row(name: str, file: InstanceFile, budget: int, solution: InstanceSolution) -> InstanceRow:
    base = file.base or 1.0
    published = next((one for one in file.published if one.budget_bytes == budget), None)

    def overhead(seconds: float | None) -> float | None:
        return None if seconds is None else seconds / base

    return InstanceRow(
        planner=name,
        budget_bytes=budget,
        share=budget / max(_peak(file), 1),
        overhead=None if solution.recomputed is None else solution.extra_seconds / base,
        peak_bytes=solution.peak_bytes,
        planning_seconds=solution.planning_seconds,
        outcome=solution.outcome,
        class_bound=overhead(solution.class_bound_seconds),
        every_plan_bound=overhead(solution.every_plan_bound_seconds),
        published_overhead=published.objective / base - 1 if published else None,
        published_seconds=published.solve_seconds if published else None,
    )


def parse_budgets(texts: Sequence[str], file: InstanceFile) -> list[int]:
    """Bytes from shares of the peak (`0.5`) or KB (`500000`): a number with a point is a share."""
    budgets = []
    for text in texts:
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 <= number < inf:
            raise OptionError(f"budget {text!r}; give a share of the peak such as 0.5, or KB such as 500000")
        budgets.append(int(number * _peak(file)) if "." in text else int(number) * KB)
    return budgets


def instance_table(file: InstanceFile, rows: Sequence[InstanceRow]) -> Table:
    table = Table(title=f"{file.name}: overhead in % of the step without recomputation")
    headings = ("budget", "share", "planner", "overhead", "class bound", "every plan", "gap", "peak", "planned")
    for name in (*headings, "published"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        seconds = "" if row.published_seconds is None else f" ({row.published_seconds:.0f} s)"
        table.add_row(
            f"{row.budget_bytes // KB} KB",
            f"{row.share:.2f}",
            row.planner,
            "[red]no plan" if row.overhead is None else _percent(row.overhead),
            _percent(row.class_bound),
            _percent(row.every_plan_bound),
            _percent(row.gap),
            f"{row.peak_bytes // KB} KB",
            f"{row.planning_seconds:.1f} s",
            _percent(row.published_overhead) + seconds,
        )
    return table


def instance_notes(rows: Sequence[InstanceRow]) -> list[str]:
    """Why there is no plan, of every row without one."""
    return [
        f"{row.budget_bytes // KB} KB, {row.planner}: {row.outcome} Smallest peak found: {row.peak_bytes // KB} KB."
        for row in rows
        if row.overhead is None
    ]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f}" if isfinite(share) else "none fits"
