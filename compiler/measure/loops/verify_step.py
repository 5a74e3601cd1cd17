"""Check the promises over a training loop: the measured peak of every step, and gradients beside plain Inductor's."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from autockpt.errors import BudgetError
from autockpt.measure.gradients import Comparison
from autockpt.measure.loops.loop import Budget, Loop, LoopFactory, plainly, within
from autockpt.measure.loops.reference import LoopReference
from autockpt.measure.verify import TOLERANCE
from autockpt.partition import decisions
from autockpt.passes.graph import nameless
from autockpt.step import StepDecision, step_decision
from autockpt.units import Progress, format_size

STEPS = 5
FIRST_PLANNED_STEP = 2
"""Steps after which every graph runs its final plan."""
_MOSTLY_USED = 0.9
_TIMED = 3
LOSS_TOLERANCE = 1e-4
"""Relative difference of a loss after some steps: differences of rounding grow from step to step."""


@dataclass(frozen=True)
class StepVerdict:
    """One training loop at one budget. Bytes are all that is live on the device."""

    target: str
    budget: str
    """As the user wrote it, or what it is."""
    budget_bytes: int = 0
    forecast_bytes: int = 0
    measured_bytes: tuple[int, ...] = ()
    """Of each step."""
    plain_bytes: int = 0
    """The highest of plain Inductor's steps."""
    min_peak_bytes: int = 0
    """Measured at the minimum peak; 0 where it was not asked for."""
    gradients: str = ""
    """`equal` if bitwise equal to plain Inductor's in all steps, else the largest relative difference, after the word
    `noise` where two runs of plain Inductor's loop differ as much."""
    recompute_share: float = 0.0
    """Of the step's seconds by the cost model."""
    time_ratio: float = 0.0
    """Seconds of a step over plain Inductor's, the least of a few each."""
    losses: str = ""
    """`equal` if bitwise equal to plain Inductor's in all steps of a descent, else the largest relative difference;
    empty where none was run, or steps return no loss."""
    rank: int | None = None
    """Of the process, where several run the loop together."""
    plans: Mapping[str, str] = field(default_factory=dict)
    """Of each graph, by a hash of it: a hash of the plans that its calls run."""
    note: str = ""
    broken: tuple[str, ...] = ()
    """Promises that do not hold."""

    @property
    def planned_peak_bytes(self) -> int:
        """The highest of the steps that run final plans."""
        return max(self.measured_bytes[FIRST_PLANNED_STEP:], default=0)

    @property
    def used(self) -> float:
        return self.planned_peak_bytes / self.budget_bytes if self.budget_bytes else 0.0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def verify_step(
    target: str,
    budgets: Sequence[Budget],
    progress: Progress,
    settings: Mapping[str, Any] | None = None,
    steps: int = STEPS,
    lower: str = "inductor",
    curve_steps: int = 0,
    highest: Callable[[int], int] = int,
) -> list[StepVerdict]:
    """A verdict for each budget; without any, 10 % above the minimum peak, and the middle between it and plain.

    `curve_steps`: of a descent, the losses of which are compared. `highest`: of a peak, over all ranks of a job.
    """
    build = LoopFactory(target, settings or {})
    with tempfile.TemporaryDirectory() as folder:
        progress(f"{target}: plain Inductor")
        reference = LoopReference(Path(folder))
        loop = build(plainly(lower))
        plain_bytes = max(reference.record(loop, steps))
        reference.repeat(loop, steps)
        plain_seconds = _least_seconds(loop, steps)
        reference.restore(loop.model, 0)
        curve = loop.losses(curve_steps)
        del loop
        lowest = 0
        named: Mapping[str, Budget] = {str(budget): budget for budget in budgets}
        if not budgets:
            progress(f"{target}: minimum peak")
            lowest = max(_Run(build(within(0.0, lower)), steps).peaks[FIRST_PLANNED_STEP:])
            most = highest(lowest)
            least = int(1.1 * most)
            named = {"minimum + 10 %": least, "middle": max((most + highest(plain_bytes)) // 2, least)}
        checks = _Checks(target, build, lower, steps, reference, plain_bytes, plain_seconds, lowest, curve, curve_steps)
        found = []
        for name, budget in named.items():
            progress(f"{target}: {name}, {format_size(budget) if isinstance(budget, int) else budget}")
            found.append(checks.verdict(name, budget))
        return found


class _Run:
    """Peaks and gradients of a loop, step by step."""

    def __init__(self, loop: Loop, steps: int, reference: LoopReference | None = None) -> None:
        self.peaks: list[int] = []
        self.differences: list[Comparison] = []
        for number in range(steps):
            if reference is not None:
                reference.restore(loop.model, number)
            self.peaks.append(loop.measured_bytes(number))
            if reference is not None:
                self.differences.append(reference.compare(loop.model, number))


def _least_seconds(loop: Loop, first: int) -> float:
    """Of a few steps without a profiler."""
    return min(loop.seconds(first + number) for number in range(_TIMED))


@dataclass(frozen=True)
class _Checks:
    """One loop at any budget."""

    target: str
    build: LoopFactory
    lower: str
    steps: int
    reference: LoopReference
    plain_bytes: int
    plain_seconds: float
    lowest_bytes: int
    plain_losses: Sequence[float] = ()
    curve_steps: int = 0
    """Run also where they return no loss: another stage of a pipeline computes it, and waits for this one."""

    def verdict(self, name: str, budget: Budget) -> StepVerdict:
        before = step_decision()
        try:
            loop = self.build(within(budget, self.lower))
            run = _Run(loop, self.steps, self.reference)
            seconds = _least_seconds(loop, self.steps)
            self.reference.restore(loop.model, 0)
            losses = loop.losses(self.curve_steps)
        except BudgetError as error:
            return StepVerdict(self.target, name, error.budget_bytes, note=str(error), broken=("fits",))
        made = step_decision()
        if made is None or made is before:
            return StepVerdict(self.target, name, measured_bytes=tuple(run.peaks), broken=("planned",))
        again = sum(call.recompute_seconds for call in made.calls)
        off = max((abs(a / b - 1) for a, b in zip(losses, self.plain_losses, strict=True)), default=0.0)
        broken = _broken(run, made, is_fraction=isinstance(budget, float)) + ["losses"] * (off > LOSS_TOLERANCE)
        return StepVerdict(
            target=self.target,
            budget=name,
            budget_bytes=made.budget_bytes,
            forecast_bytes=made.peak_bytes,
            measured_bytes=tuple(run.peaks),
            plain_bytes=self.plain_bytes,
            min_peak_bytes=self.lowest_bytes,
            gradients=_gradients(run.differences),
            recompute_share=again / made.step_seconds if made.step_seconds else 0.0,
            time_ratio=seconds / self.plain_seconds,
            losses=("equal" if losses == self.plain_losses else f"{off:.0e}") if losses else "",
            plans=_plans(made),
            note=str(made),
            broken=tuple(broken),
        )


def _gradients(found: Sequence[Comparison]) -> str:
    return str(max(found, key=lambda one: (one.beyond_noise, one.largest)))


def _broken(run: _Run, made: StepDecision, is_fraction: bool) -> list[str]:
    """The promises that do not hold. The bytes of a fraction are known only after the first step."""
    planned_peak = max(run.peaks[FIRST_PLANNED_STEP:], default=0)
    recomputes = any(call.recompute_seconds for call in made.calls)
    promises = {
        "budget": planned_peak <= made.budget_bytes,
        "first steps": is_fraction or max(run.peaks) <= made.budget_bytes,
        "gradients": max(one.beyond_noise for one in run.differences) <= TOLERANCE,
        "unused": is_fraction or not recomputes or planned_peak >= _MOSTLY_USED * made.budget_bytes,
    }
    return [name for name, holds in promises.items() if not holds]


def _plans(made: StepDecision) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    by_name = {one.name: one for one in decisions()}
    for name in made.graphs:
        one = by_name[name]
        graph, plan = one.decision.problem.graph, one.graph_plan
        # By position: names may differ between ranks.
        position = {value.name: number for number, value in enumerate(graph.values)}
        described = f"{sorted(position[n] for n in plan.saved)} {[position[n] for n in plan.backward]}"
        found.setdefault(nameless(graph)[:16], []).append(described)
    return {graph: hashlib.sha256(repr(plans).encode()).hexdigest()[:16] for graph, plans in found.items()}
