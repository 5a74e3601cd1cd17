"""Predicted against measured step time: plans from the floor to the fastest, each beside the plan that recomputes
nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from autockpt.decisions import GraphDecision, decisions
from autockpt.errors import AutockptError
from autockpt.interleaved import interleaved_times, ratio
from autockpt.kernel_times import kernel_seconds
from autockpt.passes.clock import Family, Times
from autockpt.passes.forecast import Forecast
from autockpt.training import Training, load_training

Progress = Callable[[str], None]
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
    trainings[KEEP], made[KEEP] = _compiled(target, {**options, "memory_budget": 1.0, "planner": "keep_everything"})
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
    measured = {name: kernel_seconds(training.step) for name, training in trainings.items()}
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
