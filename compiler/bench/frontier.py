"""`autockpt bench frontier`: measured peak and step time of each baseline, and of autockpt within the same peak."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from autockpt.bench.baselines import PLAIN, runnable_baselines
from autockpt.measure import TOLERANCE, ReferenceGradients, Training, interleaved_times, load_training, measure_peak
from autockpt.progress import stage
from autockpt.units import Progress, format_size

FRONTIER_BUDGETS = (0.8, 0.5, 0.2, 0.1, 0.0)
"""Values of torch's `activation_memory_budget`."""
OURS = "autockpt"
_SAME_PEAK = 0.005
"""Baselines whose peaks differ by at most this share are compared with one run of ours, at the lower peak."""


@dataclass(frozen=True)
class MeasuredRun:
    """A baseline, or autockpt at one budget. Bytes include parameters and inputs."""

    name: str
    series: str
    budget_bytes: int | None = None
    """Of autockpt; None at its minimum peak."""
    peak_bytes: int | None = None
    """Measured; None where it did not run, for the reason in `note`."""
    times: tuple[float, ...] = ()
    """Seconds of a step, one for each round."""
    gradients: str = ""
    """How they compare with plain Inductor's."""
    wrong: bool = False
    """The gradients differ from plain Inductor's by more than another order of summation explains."""
    note: str = ""


@dataclass(frozen=True)
class Pair:
    """A baseline, and autockpt with the baseline's peak as its budget."""

    baseline: MeasuredRun
    ours: MeasuredRun

    @property
    def holds(self) -> bool:
        """Whether our measured peak is within the baseline's."""
        mine, theirs = self.ours.peak_bytes, self.baseline.peak_bytes
        return mine is not None and theirs is not None and mine <= theirs


@dataclass(frozen=True)
class MeasuredFrontier:
    """All runs of one model."""

    target: str
    graph_input_bytes: int = 0
    """Parameters, buffers and inputs."""
    runs: tuple[MeasuredRun, ...] = field(default=())
    failure: str = ""
    """Why nothing could be measured."""

    @property
    def name(self) -> str:
        return self.target.rpartition(":")[2]

    @property
    def plain(self) -> MeasuredRun:
        return next(run for run in self.runs if run.series == PLAIN)

    @property
    def baselines(self) -> list[MeasuredRun]:
        return [run for run in self.runs if run.series != OURS]

    @property
    def ours(self) -> list[MeasuredRun]:
        return [run for run in self.runs if run.series == OURS]

    @property
    def pairs(self) -> list[Pair]:
        """Of the baselines that ran, in their order."""
        peaks = {run.name: run.peak_bytes for run in self.baselines if run.peak_bytes is not None}
        budgets = shared_budgets(peaks.values())
        ours = {run.budget_bytes: run for run in self.ours}
        return [Pair(run, ours[budgets[peaks[run.name]]]) for run in self.baselines if run.name in peaks]

    @property
    def broken(self) -> bool:
        """Whether autockpt exceeds a peak, does not run, or has wrong gradients."""
        failed = any(run.wrong or run.peak_bytes is None for run in self.ours)
        return bool(self.failure) or failed or not all(pair.holds for pair in self.pairs)

    def min_peak_bytes(self, series: str) -> int | None:
        peaks = [run.peak_bytes for run in self.runs if run.series == series and run.peak_bytes is not None]
        return min(peaks, default=None)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> MeasuredFrontier:
        runs = tuple(MeasuredRun(**{**run, "times": tuple(run["times"])}) for run in fields["runs"])
        return cls(**{**fields, "runs": runs})


def shared_budgets(peaks: Iterable[int]) -> dict[int, int]:
    """The budget for each baseline's peak: the peak itself, or a slightly lower one of another baseline."""
    budgets: dict[int, int] = {}
    low: int | None = None
    for peak in sorted(set(peaks)):
        if low is None or peak > low * (1 + _SAME_PEAK):
            low = peak
        budgets[peak] = low
    return budgets


def bench_frontier(target: str, budgets: Sequence[float], repeats: int, progress: Progress) -> MeasuredFrontier:
    """All runs are compiled and checked first, then timed together."""
    runs = _Runs(target, progress)
    for baseline in runnable_baselines(list(budgets)):
        runs.add(MeasuredRun(baseline.name, baseline.series), partial(baseline.start, target))
    peaks = [run.peak_bytes for run in runs.measured.values() if run.peak_bytes is not None]
    for budget in sorted(set(shared_budgets(peaks).values()), reverse=True):
        name = f"{OURS} {format_size(budget)} ({budget})"
        runs.add(MeasuredRun(name, OURS, budget_bytes=budget), partial(_start_ours, target, budget))
    runs.add(MeasuredRun(f"{OURS} minimum peak", OURS), partial(_start_ours, target, 0.0))
    return runs.timed(repeats)


def _start_ours(target: str, budget: int | float) -> Training:
    training = load_training(target, "autockpt", options={"memory_budget": budget, "scope": "graph"})
    training.step()
    return training


@dataclass
class _Runs:
    """The runs of one model so far. The first is plain Inductor, whose gradients are the reference."""

    target: str
    progress: Progress
    measured: dict[str, MeasuredRun] = field(default_factory=dict)
    trainings: dict[str, Training] = field(default_factory=dict)
    reference: ReferenceGradients | None = None

    def add(self, run: MeasuredRun, start: Callable[[], Training]) -> None:
        try:
            with stage(self.progress, run.name):
                training = start()
        except Exception as error:
            # Models and baselines may raise anything: the row says what. Without the reference nothing can be compared.
            if self.reference is None:
                raise
            self.measured[run.name] = replace(run, note=_first_line(error))
            return
        if self.reference is None:
            self.reference = ReferenceGradients(training)
        self.progress(f"{run.name}: gradients and peak")
        self.trainings[run.name] = training
        compared = self.reference.compare(training)
        self.measured[run.name] = replace(
            run,
            peak_bytes=training.graph_input_bytes + measure_peak(training.step, training.device),
            gradients=str(compared),
            wrong=compared.beyond_noise > TOLERANCE,
        )

    def timed(self, repeats: int) -> MeasuredFrontier:
        steps = {name: training.step for name, training in self.trainings.items()}
        times = interleaved_times(steps, repeats, self.progress)
        runs = tuple(replace(run, times=times.get(name, ())) for name, run in self.measured.items())
        graph_input_bytes = next(iter(self.trainings.values())).graph_input_bytes
        return MeasuredFrontier(self.target, graph_input_bytes, runs)


def _first_line(error: Exception) -> str:
    """Of an error's message; with the second line where the first, as Dynamo's, only announces it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return " ".join(lines[: 2 if lines[0].endswith(":") else 1])
