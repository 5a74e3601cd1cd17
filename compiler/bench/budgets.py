"""`autockpt bench`: budgets from floor to fastest on a real step, beside plain Inductor: peak, time, gradients."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass

from autockpt.measure import ReferenceGradients, Training, interleaved_times, load_training, measure_peak
from autockpt.partition import GraphDecision, decisions
from autockpt.units import Progress


@dataclass(frozen=True)
class Row:
    name: str
    budget_bytes: int | None
    measured_bytes: int
    """Parameters and inputs included."""
    dynamic_bytes: int
    """Without parameters and inputs."""
    forecast_bytes: int | None
    recompute_seconds: float | None
    planning_seconds: float | None
    equal_gradients: bool | None
    """To the bit, to plain Inductor's, where those are repeatable."""
    step_seconds: float
    ratio: float

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def bench(target: str, steps: int, repeats: int, progress: Progress) -> list[Row]:
    """One row for plain Inductor and one for each of `steps` absolute budgets, evenly from floor to fastest."""
    progress("plain Inductor")
    plain = load_training(target, "inductor")
    reference = ReferenceGradients(plain)
    progress("floor and fastest")
    ends = [_compiled(target, fraction)[1] for fraction in (0.0, 1.0)]
    low, high = (decision.budget_bytes for decision in ends)
    trainings: dict[str, Training] = {"inductor": plain}
    made: dict[str, GraphDecision] = {}
    for number in range(steps):
        budget = low + (high - low) * number // max(steps - 1, 1)
        name = f"autockpt {number + 1}/{steps}"
        progress(name)
        trainings[name], made[name] = _compiled(target, budget)
    equal = {name: reference.compare(training).repeated == 0.0 for name, training in trainings.items()}
    peaks = {name: measure_peak(training.step, training.device) for name, training in trainings.items()}
    times = interleaved_times({name: training.step for name, training in trainings.items()}, repeats, progress)
    seconds = {name: statistics.median(taken) for name, taken in times.items()}
    return [_row(name, trainings[name], made.get(name), equal[name], peaks[name], seconds) for name in trainings]


def _compiled(target: str, budget: int | float) -> tuple[Training, GraphDecision]:
    training = load_training(target, "autockpt", options={"memory_budget": budget})
    training.step()
    return training, decisions()[-1]


def _row(
    name: str,
    training: Training,
    decision: GraphDecision | None,
    equal: bool,
    dynamic: int,
    seconds: dict[str, float],
) -> Row:
    return Row(
        name=name,
        budget_bytes=decision.budget_bytes if decision else None,
        measured_bytes=dynamic + training.graph_input_bytes,
        dynamic_bytes=dynamic,
        forecast_bytes=decision.peak_bytes if decision else None,
        recompute_seconds=decision.recompute_seconds if decision else None,
        planning_seconds=decision.planning_seconds if decision else None,
        equal_gradients=equal if decision else None,
        step_seconds=seconds[name],
        ratio=seconds[name] / seconds["inductor"],
    )
