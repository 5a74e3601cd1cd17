"""Which step is faster, on a machine that is never quite still: rounds of all candidates, ratios with an interval."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from autockpt.measure import Step

_RESAMPLES = 1000
_WARMUP = 3


@dataclass(frozen=True)
class Ratio:
    """Of two medians, and where nine of ten resamplings of the rounds put it (Efron 1979)."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.2f} ({self.low:.2f} to {self.high:.2f})"


def interleaved_times(
    steps: Mapping[str, Step], repeats: int, progress: Callable[[str], None], warmup: int = _WARMUP
) -> dict[str, tuple[float, ...]]:
    """Seconds of every step in every round. Each round has an order of its own: nobody always follows the same one."""
    taken: dict[str, list[float]] = {name: [] for name in steps}
    order, shuffle = list(steps), random.Random(0).shuffle
    for turn in range(warmup + repeats):
        progress(f"timing, round {turn + 1} of {warmup + repeats}")
        shuffle(order)
        for name in order:
            seconds = _seconds(steps[name])
            if turn >= warmup:
                taken[name].append(seconds)
    return {name: tuple(times) for name, times in taken.items()}


def _seconds(step: Step) -> float:
    started = time.perf_counter()
    step()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - started


def ratio(times: Sequence[float], others: Sequence[float]) -> Ratio:
    """Of rounds that were taken together, so that a round in which the machine was slow is drawn for both."""
    draw = random.Random(0)
    rounds = list(zip(times, others, strict=True))
    drawn = sorted(_of_medians(draw.choices(rounds, k=len(rounds))) for _ in range(_RESAMPLES))
    return Ratio(_of_medians(rounds), drawn[_RESAMPLES // 20], drawn[-_RESAMPLES // 20])


def _of_medians(rounds: Sequence[tuple[float, float]]) -> float:
    return statistics.median(one for one, _ in rounds) / statistics.median(other for _, other in rounds)
