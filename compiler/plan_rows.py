"""An instance planned at many budgets, beside what was published for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import isfinite

from autockpt.instance import Instance
from autockpt.passes.plan_task import TaskSolution, plan
from autockpt.passes.task import Task, peak_bytes

Planner = Callable[[Task, int], TaskSolution]

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


def bench_plan(instance: Instance, budgets: Sequence[int] = (), planner: Planner = plan) -> list[PlanRow]:
    """A row for each budget; by default the published ones, or shares of the peak."""
    peak = peak_bytes(instance.task, instance.task.keep_everything)
    asked = budgets or [one.budget_bytes for one in instance.published] or [int(peak * f) for f in _FRACTIONS]
    return [_row(instance, budget, peak, planner(instance.task, budget)) for budget in asked]


def _row(instance: Instance, budget: int, peak: int, solution: TaskSolution) -> PlanRow:
    base = instance.base or 1.0
    beside = next((one for one in instance.published if one.budget_bytes == budget), None)

    return PlanRow(
        budget_bytes=budget,
        share=budget / max(peak, 1),
        overhead=None if solution.again is None else solution.extra_seconds / base,
        class_bound=_over(solution.class_bound_seconds, base),
        every_plan_bound=_over(solution.every_plan_bound_seconds, base),
        peak_bytes=solution.peak_bytes,
        seconds=solution.seconds,
        outcome=solution.outcome,
        published_overhead=beside.objective / base - 1 if beside else None,
        published_seconds=beside.solve_seconds if beside else None,
    )


def _over(seconds: float | None, base: float) -> float | None:
    return None if seconds is None else seconds / base
