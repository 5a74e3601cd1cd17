"""Samples in, timings out, on a machine that has slow seconds.

Time one kernel honestly: warmed up, until it is long enough to be read, the median and its spread.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import cycle

import torch

from autockpt.cost_models.calibration.sample import Measurement, Sample

MeasuringProgress = Callable[[str, int], None]
"""Told what is timed next, and how many readings are done."""
PASSES = 3
_RETRIES = 3
"""Passes for those that were disturbed in all passes before."""
_SLOW_SECONDS = 0.1


def measurement(sample: Sample, timing: KernelTiming, call_seconds: float) -> Measurement:
    """On CUDA a call runs ahead of the device and takes nothing; noise may leave nothing of the shortest kernels."""
    net = max(timing.seconds - (call_seconds if sample.compiled else 0.0), timing.seconds / 4)
    return Measurement(
        sample.family, sample.label, sample.works, sample.bytes_moved, net, timing.spread, sample.written
    )


@dataclass
class Stopwatch:
    device: str
    quick: bool
    progress: MeasuringProgress
    passes: int = PASSES
    done: int = 0

    def time_all(self, samples: Iterable[Sample]) -> dict[Sample, KernelTiming]:
        """The best of several passes over all samples: a machine has slow seconds, and no kernel shall be the one that
        met them every time."""
        best: dict[Sample, KernelTiming] = {}
        slow: set[str] = set()
        for sample in samples:
            # A family whose kernels get long has shown what it is: its larger ones are left out.
            if sample.family not in slow:
                best[sample] = self._time(sample)
            if sample in best and best[sample].seconds > _SLOW_SECONDS:
                slow.add(sample.family)
        for turn in range(self.passes - 1 + _RETRIES):
            for sample, before in best.items():
                wanted = turn < self.passes - 1 or not before.undisturbed
                if wanted and before.seconds < _SLOW_SECONDS:
                    best[sample] = min(before, self._time(sample), key=lambda one: (not one.undisturbed, one.seconds))
        return best

    def _time(self, sample: Sample) -> KernelTiming:
        self.progress(f"{sample.family}: {sample.label}", self.done)
        self.done += 1
        return time_quietest(sample.run, self.device, seconds=0.2 if self.quick else 1.0)


try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]  # a module where there is one


@dataclass(frozen=True, slots=True)
class KernelTiming:
    seconds: float
    """The median of the runs."""
    spread: float
    """Half of what lies between the quartiles, as a share of the median."""
    runs: int
    undisturbed: bool = True
    """Whether the median is of readings in which no thread lost its core to another program."""


def time_kernel(run: Callable[[], object], device: str = "cpu", *, least_seconds: float = 0.03) -> KernelTiming:
    """Seconds of one call. Short calls are repeated inside one reading, so that the clock and the launch queue do not
    count; on CUDA the device is waited for."""
    run()
    _wait(device)
    once = max(_read(run, 1, device), 1e-7)
    calls = max(1, round(least_seconds / 10 / once))
    readings: list[float] = []
    started = time.perf_counter()
    while len(readings) < 5 or (time.perf_counter() - started < least_seconds and len(readings) < 50):
        readings.append(_read(run, calls, device) / calls)
    low, median, high = statistics.quantiles(readings, n=4)
    return KernelTiming(median, (high - low) / 2 / median if median else 0.0, len(readings))


def time_quietest(run: Callable[[], object], device: str = "cpu", *, seconds: float = 0.3) -> KernelTiming:
    """Seconds of one call where others use the machine too.

    Threads that wait for each other take as long as the one that was put aside, and two programs can keep that up for
    seconds. So there are bursts of five readings, at uneven distances; three in which no thread of ours lost its core
    are enough, and after so many seconds the best there was has to do.
    """
    run()
    _wait(device)
    once = max(_read(run, 1, device), 1e-7)
    calls, length = max(1, round(_READING / once)), 5 if once < _LONG else 3
    bursts: list[tuple[bool, list[float]]] = []
    pauses = cycle(_PAUSES)
    started = time.perf_counter()
    while sum(quiet for quiet, _ in bursts) < 3 and (not bursts or time.perf_counter() - started < seconds):
        time.sleep(next(pauses))
        run()
        before = _switches(device)
        readings = [_read(run, calls, device) / calls for _ in range(length)]
        bursts.append((_switches(device) == before, readings))
    undisturbed = [readings for quiet, readings in bursts if quiet]
    best = min(undisturbed or [readings for _, readings in bursts], key=statistics.median)
    low, median, high = statistics.quantiles(best, n=4)
    return KernelTiming(median, (high - low) / 2 / median if median else 0.0, length * len(bursts), bool(undisturbed))


_READING = 1e-4
"""Seconds that the clock reads without an error that counts."""
_LONG = 0.05
_PAUSES = (0.0, 0.003, 0.007, 0.013)


def _switches(device: str) -> int:
    """How often a thread of this process has lost its core, or had to be woken and wait for one; always 0 where the
    system does not say, and on CUDA, where the process waits for the device anyway."""
    if resource is None or device != "cpu":
        return 0
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_nivcsw + usage.ru_nvcsw


def _read(run: Callable[[], object], calls: int, device: str) -> float:
    started = time.perf_counter()
    for _ in range(calls):
        run()
    _wait(device)
    return time.perf_counter() - started


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
