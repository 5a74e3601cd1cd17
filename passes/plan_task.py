"""The default planner of a `Task`: the search, and beside its plan what no plan can beat."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from time import perf_counter

from autockpt.passes.bound import every_plan_bound
from autockpt.passes.task import Again, Task, peak_bytes
from autockpt.passes.task_search import Search


@dataclass(frozen=True)
class TaskSolution:
    again: Again | None
    """None where no plan was found to fit."""
    extra_seconds: float
    peak_bytes: int
    """Of the plan; where none fits, the lowest that was found."""
    class_bound_seconds: float | None
    """No plan of the gap program's class has less extra; None where it was not asked."""
    every_plan_bound_seconds: float | None
    """No plan at all has less extra."""
    seconds: float
    """Spent planning."""
    outcome: str


def plan(task: Task, budget_bytes: int, limit_seconds: float = 8.0, bounds: bool = True) -> TaskSolution:
    """`limit_seconds` is for the solvers; everything else takes the same number of steps every time."""
    started = perf_counter()
    every = every_plan_bound(task, budget_bytes) if bounds else None
    search = Search(task, budget_bytes, limit_seconds)
    search.run(hopeless=every == inf)
    best, proven = search.best, search.proven
    if best is not None and every is not None and search.seconds <= every * (1 + 1e-6):
        proven = True
    return TaskSolution(
        again=best,
        extra_seconds=search.seconds,
        peak_bytes=peak_bytes(task, best if best is not None else search.lowest),
        class_bound_seconds=search.class_bound,
        every_plan_bound_seconds=search.seconds if proven and best is not None else every,
        seconds=perf_counter() - started,
        outcome=_words(best is not None, proven or every == inf, search.timed_out),
    )


def _words(found: bool, proven: bool, timed_out: bool) -> str:
    late = " A solver ran out of time, so another run may differ." if timed_out else ""
    if found:
        return ("The plan is proven optimal." if proven else "The plan fits; a faster one may exist.") + late
    if proven:
        return "No plan fits the budget; this is proven. Raise the budget."
    return "No plan was found to fit the budget. Raise the budget." + late
