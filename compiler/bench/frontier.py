"""The frontier, measured: what baselines reach on a model, and ours at each of their peaks and at the floor.

What was measured of each candidate on one model, and which of ours meets which baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from autockpt.bench.baselines import PLAIN, baselines
from autockpt.measure import TOLERANCE, ReferenceGradients, Training, interleaved_times, load_training, measure_peak
from autockpt.units import Progress, format_size

BUDGETS = (0.8, 0.5, 0.2, 0.1, 0.0)
"""Of torch's `activation_memory_budget`."""


def bench_frontier(target: str, budgets: Sequence[float], repeats: int, progress: Progress) -> Frontier:
    """Everything is compiled and checked first; then all candidates are timed together."""
    bench = _Bench(target, progress)
    for baseline in baselines(list(budgets)):
        bench.add(Candidate(baseline.name, baseline.series), partial(baseline.start, target))
    peaks = [baseline.peak_bytes for baseline in bench.candidates.values() if baseline.peak_bytes is not None]
    for budget in sorted(set(shared_budgets(peaks).values()), reverse=True):
        name = f"{OURS} {format_size(budget)} ({budget})"
        bench.add(Candidate(name, OURS, budget_bytes=budget), partial(_ours, target, budget))
    bench.add(Candidate(f"{OURS} floor", OURS), partial(_ours, target, 0.0))
    return bench.timed(repeats)


def _ours(target: str, budget: int | float) -> Training:
    training = load_training(target, "autockpt", options={"memory_budget": budget})
    training.step()
    return training


@dataclass
class _Bench:
    """Candidates of one model as they come; the first is plain Inductor, whose gradients the others must have."""

    target: str
    progress: Progress
    candidates: dict[str, Candidate] = field(default_factory=dict)
    trainings: dict[str, Training] = field(default_factory=dict)
    reference: ReferenceGradients | None = None

    def add(self, candidate: Candidate, start: Callable[[], Training]) -> None:
        self.progress(candidate.name)
        try:
            training = start()
        except Exception as error:
            # A baseline is a stranger: whatever it raises is what its row says. Without plain Inductor there are no rows.
            if self.reference is None:
                raise
            self.candidates[candidate.name] = replace(candidate, note=_reason(error))
            return
        if self.reference is None:
            self.reference = ReferenceGradients(training)
        self.trainings[candidate.name] = training
        self.candidates[candidate.name] = self._checked(candidate, training, self.reference)

    def _checked(self, candidate: Candidate, training: Training, reference: ReferenceGradients) -> Candidate:
        found = reference.compare(training)
        return replace(
            candidate,
            peak_bytes=training.graph_input_bytes + measure_peak(training.step, training.device),
            gradients=str(found),
            wrong=found.beyond_noise > TOLERANCE,
        )

    def timed(self, repeats: int) -> Frontier:
        steps = {name: training.step for name, training in self.trainings.items()}
        times = interleaved_times(steps, repeats, self.progress)
        done = tuple(replace(one, times=times.get(name, ())) for name, one in self.candidates.items())
        graph_input_bytes = next(iter(self.trainings.values())).graph_input_bytes
        return Frontier(self.target, graph_input_bytes, done)


def _reason(error: Exception) -> str:
    """One line; Dynamo's own first line only says that there is another."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return " ".join(lines[: 2 if lines[0].endswith(":") else 1])


OURS = "autockpt"
SAME = 0.005
"""Rivals whose peaks are this close meet one candidate of ours, at the lower peak."""


@dataclass(frozen=True)
class Candidate:
    """Bytes include parameters and inputs."""

    name: str
    series: str
    budget_bytes: int | None = None
    """What ours was given; None where it was asked for its floor."""
    peak_bytes: int | None = None
    """Measured; None where it did not run, and the note says why."""
    times: tuple[float, ...] = ()
    """Seconds of a step, one for each round."""
    gradients: str = ""
    wrong: bool = False
    """The gradients differ from plain Inductor's by more than another order of sums explains."""
    note: str = ""


@dataclass(frozen=True)
class Pair:
    """A baseline, and ours at the peak that the baseline reaches."""

    baseline: Candidate
    ours: Candidate

    @property
    def holds(self) -> bool:
        mine, theirs = self.ours.peak_bytes, self.baseline.peak_bytes
        return mine is not None and theirs is not None and mine <= theirs


@dataclass(frozen=True)
class Frontier:
    """One model."""

    target: str
    graph_input_bytes: int = 0
    """Parameters, buffers and inputs."""
    candidates: tuple[Candidate, ...] = field(default=())
    trouble: str = ""
    """Why nothing could be measured."""

    @property
    def name(self) -> str:
        return self.target.rpartition(":")[2]

    @property
    def plain(self) -> Candidate:
        return next(candidate for candidate in self.candidates if candidate.series == PLAIN)

    @property
    def baselines(self) -> list[Candidate]:
        return [candidate for candidate in self.candidates if candidate.series != OURS]

    @property
    def ours(self) -> list[Candidate]:
        return [candidate for candidate in self.candidates if candidate.series == OURS]

    @property
    def pairs(self) -> list[Pair]:
        """In the order of the baselines, of those that ran."""
        shared = shared_budgets(baseline.peak_bytes for baseline in self.baselines if baseline.peak_bytes is not None)
        at = {mine.budget_bytes: mine for mine in self.ours}
        ran = [baseline for baseline in self.baselines if baseline.peak_bytes is not None]
        return [Pair(baseline, at[shared[baseline.peak_bytes]]) for baseline in ran if baseline.peak_bytes is not None]

    @property
    def broken(self) -> bool:
        """Ours is over a peak, does not run, or has other gradients."""
        alone = any(mine.wrong or mine.peak_bytes is None for mine in self.ours)
        return bool(self.trouble) or alone or not all(pair.holds for pair in self.pairs)

    def lowest(self, series: str) -> int | None:
        peaks = [c.peak_bytes for c in self.candidates if c.series == series and c.peak_bytes is not None]
        return min(peaks, default=None)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Frontier:
        made = tuple(Candidate(**{**row, "times": tuple(row["times"])}) for row in fields["candidates"])
        return cls(**{**fields, "candidates": made})


def shared_budgets(peaks: Iterable[int]) -> dict[int, int]:
    """The budget with which ours meets each peak: itself, or a peak just below it that is met anyway."""
    found: dict[int, int] = {}
    low: int | None = None
    for peak in sorted(set(peaks)):
        if low is None or peak > low * (1 + SAME):
            low = peak
        found[peak] = low
    return found
