"""Measured seconds of real steps: candidates interleaved, with a confidence interval of ratios, and by kernel family.

Interleaving exposes all candidates alike to whatever else slows the machine down.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from autockpt.cost_models.memory import quiet_profile
from autockpt.measure.peak import Step
from autockpt.passes.forecast import Family, Times

_RESAMPLES = 1000
_WARMUP = 3


@dataclass(frozen=True)
class Ratio:
    """The ratio of two medians, and its 90 % interval by the bootstrap over rounds (Efron 1979)."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.2f} ({self.low:.2f} to {self.high:.2f})"


def interleaved_times(
    steps: Mapping[str, Step], repeats: int, progress: Callable[[str], None], warmup: int = _WARMUP
) -> dict[str, tuple[float, ...]]:
    """Seconds of every step in every round. The order in a round is random: no step always follows the same one."""
    taken: dict[str, list[float]] = {name: [] for name in steps}
    order, shuffle = list(steps), random.Random(0).shuffle
    for number in range(warmup + repeats):
        progress(f"timing, round {number + 1} of {warmup + repeats}")
        shuffle(order)
        for name in order:
            seconds = _seconds(steps[name])
            if number >= warmup:
                taken[name].append(seconds)
    return {name: tuple(times) for name, times in taken.items()}


def _seconds(step: Step) -> float:
    started = time.perf_counter()
    step()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - started


def ratio(times: Sequence[float], others: Sequence[float]) -> Ratio:
    """Of the medians of two steps. Resamples whole rounds: one in which the machine was slow is drawn for both."""
    draw = random.Random(0)
    rounds = list(zip(times, others, strict=True))
    drawn = sorted(_of_medians(draw.choices(rounds, k=len(rounds))) for _ in range(_RESAMPLES))
    return Ratio(_of_medians(rounds), drawn[_RESAMPLES // 20], drawn[-_RESAMPLES // 20])


def _of_medians(rounds: Sequence[tuple[float, float]]) -> float:
    return statistics.median(one for one, _ in rounds) / statistics.median(other for _, other in rounds)


_STEPS = 5
_NAMES = {
    Family.ATTENTION: ("scaled_dot_product", "flash_attention"),
    Family.CONVOLUTION: ("conv",),
    Family.MATMUL: ("::mm", "::addmm", "::bmm", "::baddbmm"),
}


def seconds_by_family(step: Step) -> Times:
    """Mean seconds of a step by kernel family. The profiler sees kernels of torch's libraries; the rest is `OTHER`."""
    step()
    with quiet_profile() as profiler:
        started = time.perf_counter()
        for _ in range(_STEPS):
            step()
        total = time.perf_counter() - started
    times = dict.fromkeys(Family, 0.0)
    for event in profiler.key_averages():
        times[_family(event.key)] += event.self_cpu_time_total / 1e6 / _STEPS
    times[Family.OTHER] = total / _STEPS - sum(seconds for family, seconds in times.items() if family in _NAMES)
    return times


def _family(name: str) -> Family:
    found = (family for family, parts in _NAMES.items() if any(part in name for part in parts))
    return next(found, Family.OTHER)
