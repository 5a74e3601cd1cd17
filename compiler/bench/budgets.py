"""`autockpt bench budgets`: steps measured at budgets from the minimum peak to the fastest plan, and plain Inductor."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.table import Table

from autockpt.measure import ReferenceGradients, Training, interleaved_times, load_training, measure_peak
from autockpt.partition import GraphDecision, decisions
from autockpt.progress import stage
from autockpt.units import Progress, format_size

PLAIN = "inductor"


@dataclass(frozen=True)
class BudgetRow:
    """Plain Inductor, or autockpt at one budget. What only a plan has is None for plain Inductor."""

    name: str
    budget_bytes: int | None
    measured_bytes: int
    """Peak, parameters and inputs included."""
    dynamic_bytes: int
    """Peak without parameters and inputs."""
    forecast_bytes: int | None
    recompute_seconds: float | None
    planning_seconds: float | None
    equal_gradients: bool | None
    """Whether all gradients that plain Inductor repeats bitwise are bitwise equal to its own."""
    step_seconds: float
    """Median of the timed steps."""
    ratio: float
    """Of the step time to plain Inductor's."""

    @property
    def is_over_budget(self) -> bool:
        return self.budget_bytes is not None and self.measured_bytes > self.budget_bytes

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def bench_budgets(target: str, steps: int, repeats: int, progress: Progress) -> list[BudgetRow]:
    """A row for plain Inductor, and one for each of `steps` evenly spaced budgets in bytes."""
    progress("plain Inductor")
    plain = load_training(target, "inductor")
    reference = ReferenceGradients(plain)
    with stage(progress, "minimum peak and fastest plan"):
        low, high = (_compiled(target, fraction)[1].budget_bytes for fraction in (0.0, 1.0))
    trainings: dict[str, Training] = {PLAIN: plain}
    planned: dict[str, GraphDecision] = {}
    for number in range(steps):
        budget = low + (high - low) * number // max(steps - 1, 1)
        name = f"autockpt {number + 1}/{steps}"
        with stage(progress, name):
            trainings[name], planned[name] = _compiled(target, budget)
    progress("comparing gradients")
    equal = {name: reference.compare(training).repeated == 0.0 for name, training in trainings.items()}
    progress("measuring peaks")
    peaks = {name: measure_peak(training.step, training.device) for name, training in trainings.items()}
    times = interleaved_times({name: training.step for name, training in trainings.items()}, repeats, progress)
    seconds = {name: statistics.median(taken) for name, taken in times.items()}
    return [_row(name, trainings[name], planned.get(name), equal[name], peaks[name], seconds) for name in trainings]


def _compiled(target: str, budget: int | float) -> tuple[Training, GraphDecision]:
    training = load_training(target, "autockpt", options={"memory_budget": budget, "scope": "graph"})
    training.step()
    return training, decisions()[-1]


def _row(
    name: str,
    training: Training,
    decision: GraphDecision | None,
    equal: bool,
    dynamic: int,
    seconds: dict[str, float],
) -> BudgetRow:
    return BudgetRow(
        name=name,
        budget_bytes=decision.budget_bytes if decision else None,
        measured_bytes=dynamic + training.graph_input_bytes,
        dynamic_bytes=dynamic,
        forecast_bytes=decision.peak_bytes if decision else None,
        recompute_seconds=decision.recompute_seconds if decision else None,
        planning_seconds=decision.planning_seconds if decision else None,
        equal_gradients=equal if decision else None,
        step_seconds=seconds[name],
        ratio=seconds[name] / seconds[PLAIN],
    )


def budget_table(rows: Sequence[BudgetRow]) -> Table:
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


def over_budget(rows: Sequence[BudgetRow]) -> list[str]:
    """A sentence for every row whose measured peak is over its budget."""
    return [
        f"{row.name}: measured {row.measured_bytes} bytes, budget {row.budget_bytes} bytes"
        for row in rows
        if row.is_over_budget
    ]
