"""The frontier, measured: what rivals reach on a model, and ours at each of their peaks and at the floor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from autockpt.frontier_rows import OURS, Candidate, Frontier, shared_budgets
from autockpt.gradients import References
from autockpt.interleaved import interleaved_times
from autockpt.measure import measure_peak
from autockpt.rivals import rivals
from autockpt.sizes import format_size
from autockpt.training import Training, load_training
from autockpt.verification import TOLERANCE

Progress = Callable[[str], None]
BUDGETS = (0.8, 0.5, 0.2, 0.1, 0.0)
"""Of torch's `activation_memory_budget`."""


def bench_frontier(target: str, budgets: Sequence[float], repeats: int, progress: Progress) -> Frontier:
    """Everything is compiled and checked first; then all candidates are timed together."""
    bench = _Bench(target, progress)
    for rival in rivals(list(budgets)):
        bench.add(Candidate(rival.name, rival.series), partial(rival.start, target))
    peaks = [rival.peak_bytes for rival in bench.candidates.values() if rival.peak_bytes is not None]
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
    reference: References | None = None

    def add(self, candidate: Candidate, start: Callable[[], Training]) -> None:
        self.progress(candidate.name)
        try:
            training = start()
        except Exception as error:
            # A rival is a stranger: whatever it raises is what its row says. Without plain Inductor there are no rows.
            if self.reference is None:
                raise
            self.candidates[candidate.name] = replace(candidate, note=_reason(error))
            return
        if self.reference is None:
            self.reference = References(training)
        self.trainings[candidate.name] = training
        self.candidates[candidate.name] = self._checked(candidate, training, self.reference)

    def _checked(self, candidate: Candidate, training: Training, reference: References) -> Candidate:
        found = reference.compare(training)
        return replace(
            candidate,
            peak_bytes=training.given_bytes + measure_peak(training.step, training.device),
            gradients=str(found),
            wrong=found.beyond_noise > TOLERANCE,
        )

    def timed(self, repeats: int) -> Frontier:
        steps = {name: training.step for name, training in self.trainings.items()}
        times = interleaved_times(steps, repeats, self.progress)
        done = tuple(replace(one, times=times.get(name, ())) for name, one in self.candidates.items())
        given_bytes = next(iter(self.trainings.values())).given_bytes
        return Frontier(self.target, given_bytes, done)


def _reason(error: Exception) -> str:
    """One line; Dynamo's own first line only says that there is another."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return " ".join(lines[: 2 if lines[0].endswith(":") else 1])
