"""`autockpt bench overhead`: predicted against measured step time of plans from the fastest to the minimum peak.

Both are ratios to the plan that recomputes nothing, so that a machine that is faster or slower than its profile by a
constant factor does not matter; what is judged is how well the cost model ranks plans and prices recomputation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from autockpt.errors import AutockptError
from autockpt.measure import Training, interleaved_times, load_training, ratio, seconds_by_family
from autockpt.partition import GraphDecision, decisions
from autockpt.passes.forecast import Family, Forecast, Times
from autockpt.progress import stage
from autockpt.units import Progress

NO_RECOMPUTATION = "nothing recomputed"


@dataclass(frozen=True)
class TimedPlan:
    """One plan; `predicted` and `measured` are step times as multiples of the plan that recomputes nothing."""

    name: str
    budget: float | None
    """From the minimum peak, 0.0, to the fastest plan, 1.0; None for the plan that recomputes nothing."""
    predicted_seconds: float
    measured_seconds: float
    predicted: float
    measured: float
    low: float
    high: float
    """The 90 % interval of what was measured, by the bootstrap over rounds."""
    families: Mapping[str, tuple[float, float]]
    """Extra seconds over the plan that recomputes nothing by kernel family: predicted and measured."""

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


@dataclass(frozen=True)
class Overhead:
    """The timed plans of one model."""

    target: str
    plans: tuple[TimedPlan, ...] = ()
    """The one that recomputes nothing, then from the fastest to the minimum peak; equal plans once."""
    device: str = ""
    failure: str = ""
    """Why nothing could be measured."""

    @property
    def name(self) -> str:
        return self.target.rpartition(":")[2]

    @property
    def rank_correlation(self) -> float:
        """Spearman's, of predicted and measured."""
        return spearman([plan.predicted for plan in self.plans], [plan.measured for plan in self.plans])

    def nearest(self, budget: float) -> TimedPlan:
        distances = [(abs(plan.budget - budget), at) for at, plan in enumerate(self.plans) if plan.budget is not None]
        return self.plans[min(distances)[1]]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Overhead:
        return cls(**{**fields, "plans": tuple(TimedPlan(**plan) for plan in fields["plans"])})


def bench_overhead(target: str, plans: int, repeats: int, progress: Progress, **options: Any) -> Overhead:
    """Plans at evenly spaced budgets. All are compiled first, then timed together."""
    none = {**options, "memory_budget": 1.0, "planner": "save_everything"}
    with stage(progress, NO_RECOMPUTATION):
        training, decision = _compiled(target, none)
    trainings, decided = {NO_RECOMPUTATION: training}, {NO_RECOMPUTATION: decision}
    budgets: dict[str, float] = {}
    for number in range(plans):
        budget = round(1.0 - number / max(plans - 1, 1), 3)
        name = f"budget {budget:g}"
        with stage(progress, f"{name}, {number + 1} of {plans}"):
            training, decision = _compiled(target, {**options, "memory_budget": budget})
        if decision.plan in [known.plan for known in decided.values()]:
            continue
        trainings[name], decided[name], budgets[name] = training, decision, budget
    times = interleaved_times({name: training.step for name, training in trainings.items()}, repeats, progress)
    progress("kernels by family")
    families = {name: seconds_by_family(training.step) for name, training in trainings.items()}
    timed = [_timed(name, budgets.get(name), decided, times, families) for name in decided]
    device = decided[NO_RECOMPUTATION].decision.problem.device
    return Overhead(target, tuple(timed), device.name if device else "")


def _compiled(target: str, options: dict[str, Any]) -> tuple[Training, GraphDecision]:
    before = len(decisions())
    training = load_training(target, "autockpt", options={**options, "scope": "graph"})
    training.step()
    made = decisions()[before:]
    if len(made) != 1:
        found = f"has {len(made)} graphs" if made else "was not planned"
        raise AutockptError(f"{target} {found}; this bench needs a model that is one graph")
    return training, made[0]


def _timed(
    name: str,
    budget: float | None,
    decided: Mapping[str, GraphDecision],
    times: Mapping[str, Sequence[float]],
    families: Mapping[str, Times],
) -> TimedPlan:
    forecast, reference = decided[name].forecast, decided[NO_RECOMPUTATION].forecast
    measured = ratio(times[name], times[NO_RECOMPUTATION])
    seconds, reference_seconds = families[name], families[NO_RECOMPUTATION]
    return TimedPlan(
        name=name,
        budget=budget,
        predicted_seconds=forecast.step_seconds,
        measured_seconds=sorted(times[name])[len(times[name]) // 2],
        predicted=forecast.step_seconds / reference.step_seconds,
        measured=measured.middle,
        low=measured.low,
        high=measured.high,
        families={
            one.value: (_predicted(forecast, one) - _predicted(reference, one), seconds[one] - reference_seconds[one])
            for one in Family
        },
    )


def _predicted(forecast: Forecast, family: Family) -> float:
    return forecast.forward_times[family] + forecast.backward_times[family]


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Rank correlation; equal values share the mean of their ranks (Spearman 1904). 0 where all of one are equal."""
    first, second = _ranks(one), _ranks(other)
    middle = (len(one) - 1) / 2
    products = sum((a - middle) * (b - middle) for a, b in zip(first, second, strict=True))
    spread = sum((a - middle) ** 2 for a in first) * sum((b - middle) ** 2 for b in second)
    return products / spread**0.5 if spread else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2 for value in values
    ]
