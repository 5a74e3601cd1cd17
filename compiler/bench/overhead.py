"""Predicted against measured step time: plans from the floor to the fastest, each beside the plan that recomputes
nothing.

What `autockpt bench overhead` prints and writes.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from rich.table import Table

from autockpt import __version__
from autockpt.errors import AutockptError
from autockpt.measure import Training, interleaved_times, load_training, ratio, seconds_by_family
from autockpt.partition import GraphDecision, decisions
from autockpt.passes.forecast import Family, Forecast, Times
from autockpt.units import Progress

KEEP = "nothing recomputed"


@dataclass(frozen=True)
class Point:
    """One plan, its step time as a multiple of the plan that recomputes nothing."""

    name: str
    budget: float | None
    """Between floor and fastest; None for the plan that recomputes nothing."""
    predicted_seconds: float
    measured_seconds: float
    predicted: float
    measured: float
    low: float
    high: float
    """Where nine of ten resamplings of the rounds put what was measured."""
    families: Mapping[str, tuple[float, float]]
    """Seconds more than without recomputation by kind of kernel: predicted and measured."""

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


@dataclass(frozen=True)
class Overhead:
    target: str
    points: tuple[Point, ...] = ()
    """From the fastest to the floor; equal plans once."""
    device: str = ""
    trouble: str = ""

    @property
    def name(self) -> str:
        return self.target.rpartition(":")[2]

    @property
    def rank_correlation(self) -> float:
        """Spearman's, of predicted and measured."""
        return spearman([p.predicted for p in self.points], [p.measured for p in self.points])

    def nearest(self, budget: float) -> Point:
        placed = [(abs(point.budget - budget), at) for at, point in enumerate(self.points) if point.budget is not None]
        return self.points[min(placed)[1]]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Overhead:
        return cls(**{**fields, "points": tuple(Point(**point) for point in fields["points"])})


def bench_overhead(target: str, plans: int, repeats: int, progress: Progress, **options: Any) -> Overhead:
    """Everything is compiled first; then all plans are timed together."""
    progress(KEEP)
    trainings, made = {}, {}
    trainings[KEEP], made[KEEP] = _compiled(target, {**options, "memory_budget": 1.0, "planner": "save_everything"})
    budgets: dict[str, float] = {}
    for number in range(plans):
        budget = round(1.0 - number / max(plans - 1, 1), 3)
        name = f"budget {budget:g}"
        progress(name)
        training, decision = _compiled(target, {**options, "memory_budget": budget})
        if decision.plan in [known.plan for known in made.values()]:
            continue
        trainings[name], made[name], budgets[name] = training, decision, budget
    times = interleaved_times({n: t.step for n, t in trainings.items()}, repeats, progress)
    progress("kernels, one by one")
    measured = {name: seconds_by_family(training.step) for name, training in trainings.items()}
    points = [_point(name, budgets.get(name), made, times, measured) for name in made]
    device = made[KEEP].decision.problem.device
    return Overhead(target, tuple(points), device.name if device else "")


def _compiled(target: str, options: dict[str, Any]) -> tuple[Training, GraphDecision]:
    before = len(decisions())
    training = load_training(target, "autockpt", options=options)
    training.step()
    made = decisions()[before:]
    if len(made) != 1:
        what = f"is {len(made)} graphs" if made else "was not planned"
        raise AutockptError(f"{target} {what}; overhead is foretold of a model that is one")
    return training, made[0]


def _point(
    name: str,
    budget: float | None,
    made: Mapping[str, GraphDecision],
    times: Mapping[str, Sequence[float]],
    measured: Mapping[str, Times],
) -> Point:
    mine, base = made[name].forecast, made[KEEP].forecast
    found = ratio(times[name], times[KEEP])
    return Point(
        name=name,
        budget=budget,
        predicted_seconds=mine.step_seconds,
        measured_seconds=sorted(times[name])[len(times[name]) // 2],
        predicted=mine.step_seconds / base.step_seconds,
        measured=found.middle,
        low=found.low,
        high=found.high,
        families={
            family.value: (_step(mine, family) - _step(base, family), measured[name][family] - measured[KEEP][family])
            for family in Family
        },
    )


def _step(forecast: Forecast, family: Family) -> float:
    return forecast.forward_times[family] + forecast.backward_times[family]


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Rank correlation, equal values sharing the mean of their ranks (Spearman 1904)."""
    first, second = _ranks(one), _ranks(other)
    middle = (len(one) - 1) / 2
    products = sum((a - middle) * (b - middle) for a, b in zip(first, second, strict=True))
    spread = sum((a - middle) ** 2 for a in first) * sum((b - middle) ** 2 for b in second)
    return products / spread**0.5 if spread else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2 for value in values
    ]


NEAR = 0.10
_WORST = 5
_HEADINGS = ("model", "step", "predicted", "plan", "ratio", "predicted", "error", "ranks agree")


def rows(overheads: Sequence[Overhead], budgets: Sequence[float]) -> list[list[str]]:
    """A line for each budget of each model; ratios are to the plan that recomputes nothing."""
    shown = []
    for overhead in overheads:
        if overhead.trouble:
            shown.append([overhead.name, overhead.trouble, *[""] * (len(_HEADINGS) - 2)])
            continue
        base = overhead.points[0]
        head = [overhead.name, _milliseconds(base.measured_seconds), _milliseconds(base.predicted_seconds)]
        for point in picked(overhead, budgets):
            shown.append([*head, *_cells(point), f"{overhead.rank_correlation:.2f}" if head[0] else ""])
            head = ["", "", ""]
    return shown


def picked(overhead: Overhead, budgets: Sequence[float]) -> list[Point]:
    """The plan nearest to each of these budgets, each once."""
    if len(overhead.points) < 2:
        return []
    found = {point.name: point for point in map(overhead.nearest, sorted(budgets, reverse=True))}
    return list(found.values())


def _cells(point: Point) -> list[str]:
    measured = f"{point.measured:.2f} ({point.low:.2f} to {point.high:.2f})"
    return [point.name, measured, f"{point.predicted:.2f}", f"{point.error:+.1%}"]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms"


def overhead_table(overheads: Sequence[Overhead], budgets: Sequence[float]) -> Table:
    """For a terminal."""
    shown = Table(*_HEADINGS, title="step time over that of the plan that recomputes nothing")
    for column in shown.columns[1:]:
        column.no_wrap, column.justify = True, "right"
    for row in rows(overheads, budgets):
        shown.add_row(*row)
    return shown


def overhead_summary(overheads: Sequence[Overhead], budgets: Sequence[float]) -> list[str]:
    """What a reader wants to know first, and where the worst come from."""
    ran = [overhead for overhead in overheads if not overhead.trouble]
    points = [(overhead, point) for overhead in ran for point in picked(overhead, budgets)]
    if not points:
        return ["nothing was measured"]
    errors = [abs(point.error) for _, point in points]
    ranks = [overhead.rank_correlation for overhead in ran]
    plans = [abs(point.error) for overhead in ran for point in overhead.points[1:]]
    lines = [
        f"profile: {', '.join(sorted({overhead.device for overhead in ran}))}",
        f"predicted within {NEAR:.0%} of measured: {sum(e <= NEAR for e in errors)} of {len(errors)} "
        f"(median {statistics.median(errors):.1%}, worst {max(errors):.1%}); of all plans timed "
        f"{sum(e <= NEAR for e in plans)} of {len(plans)}",
        f"rank correlation over {min(len(o.points) for o in ran)} to {max(len(o.points) for o in ran)} plans a model: "
        f"median {statistics.median(ranks):.2f}, lowest {min(ranks):.2f}",
    ]
    worst = sorted(points, key=lambda found: -abs(found[1].error))[:_WORST]
    return [*lines, "worst, and the seconds more than without recomputation, predicted / measured:"] + [
        f"  {overhead.name}, {point.name}: {point.error:+.1%}; {_families(point)}" for overhead, point in worst
    ]


def _families(point: Point) -> str:
    told = [
        f"{name} {predicted * 1e3:+.1f} / {measured * 1e3:+.1f} ms"
        for name, (predicted, measured) in point.families.items()
        if predicted or measured
    ]
    return ", ".join(told)


def overhead_markdown(overheads: Sequence[Overhead], budgets: Sequence[float], lines: Sequence[str]) -> str:
    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    names = " ".join(overhead.name for overhead in overheads)
    made = f"`autockpt bench overhead` on {names}; autockpt {__version__}, torch {torch.__version__.partition('+')[0]}."
    body = [line(_HEADINGS), line(["---"] * len(_HEADINGS)), *map(line, rows(overheads, budgets))]
    return (
        "\n".join(["# Predicted and measured step time", "", made, "", *body, "", *(f"- {text}" for text in lines)])
        + "\n"
    )
