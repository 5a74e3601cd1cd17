"""Times kernels on a machine that other programs use too: one call by `time_kernel`, many samples by `Stopwatch`.

A reading is the wall time of enough calls for the clock to resolve, after a warm-up call. A kernel's time is the median
of several readings. Calibration needs more than that, because its fit uses every single figure: kernels run on several
threads that wait for each other, so a call takes as long as its slowest thread, and another program may delay one
thread for seconds. `time_quietest` therefore takes bursts of readings and uses a burst in which the operating
system counted no context switch of this process; `Stopwatch` times all samples in several passes and takes the best.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle

import torch

from autockpt.cost_models.calibration.sample import Measurement, Sample

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]  # otherwise a module

MeasuringProgress = Callable[[str, int], None]
"""Called with what is timed next and the number of timings done."""
PASSES = 3
_RETRIES = 3
"""Additional passes over the samples that were disturbed in every pass."""
_SLOW_SECONDS = 0.1
"""Kernels above this are timed in one pass, and larger ones of their family are skipped."""
_READING_SECONDS = 1e-4
"""Shortest reading that the clock resolves with a negligible error."""
_LONG_SECONDS = 0.05
"""Kernels above this get bursts of three readings instead of five."""
_PAUSES = (0.0, 0.003, 0.007, 0.013)
"""Seconds between bursts, uneven so that they do not fall in step with another program's period."""


@dataclass(frozen=True, slots=True)
class KernelTiming:
    seconds: float
    """Median of the readings, for one call."""
    spread: float
    """Half of the interquartile range, as a share of the median."""
    readings: int
    undisturbed: bool = True
    """Whether the process lost no core to another program during these readings."""


def time_kernel(run: Callable[[], object], device: str = "cpu", *, least_seconds: float = 0.03) -> KernelTiming:
    """Seconds of one call, from at least five readings; on CUDA each reading waits for the device."""
    calls = max(1, round(least_seconds / 10 / _warm_up(run, device)))
    readings: list[float] = []
    started = time.perf_counter()
    while len(readings) < 5 or (time.perf_counter() - started < least_seconds and len(readings) < 50):
        readings.append(_read(run, calls, device))
    return _timing(readings, len(readings), undisturbed=True)


def time_quietest(run: Callable[[], object], device: str = "cpu", *, seconds: float = 0.3) -> KernelTiming:
    """Seconds of one call in the fastest undisturbed burst of readings.

    Ends after three undisturbed bursts, or after so many seconds; if all bursts were disturbed, the fastest counts.
    """
    once = _warm_up(run, device)
    calls, length = max(1, round(_READING_SECONDS / once)), 5 if once < _LONG_SECONDS else 3
    bursts: list[tuple[bool, list[float]]] = []
    pauses = cycle(_PAUSES)
    started = time.perf_counter()
    while sum(quiet for quiet, _ in bursts) < 3 and (not bursts or time.perf_counter() - started < seconds):
        time.sleep(next(pauses))
        run()
        before = _context_switches(device)
        readings = [_read(run, calls, device) for _ in range(length)]
        bursts.append((_context_switches(device) == before, readings))
    undisturbed = [readings for quiet, readings in bursts if quiet]
    best = min(undisturbed or [readings for _, readings in bursts], key=statistics.median)
    return _timing(best, length * len(bursts), undisturbed=bool(undisturbed))


@dataclass
class Stopwatch:
    device: str
    quick: bool
    progress: MeasuringProgress
    passes: int = PASSES
    done: int = 0

    def time_all(self, samples: Iterable[Sample]) -> dict[Sample, KernelTiming]:
        """The best of several passes over all samples, so that a slow second of the machine does not spoil a kernel.

        A family's samples come in increasing size; those after the first slow one are skipped and not in the result.
        """
        best: dict[Sample, KernelTiming] = {}
        slow: set[str] = set()
        for sample in samples:
            if sample.family in slow:
                continue
            best[sample] = self._time(sample)
            if best[sample].seconds > _SLOW_SECONDS:
                slow.add(sample.family)
        for number in range(1, self.passes + _RETRIES):
            for sample, before in best.items():
                wanted = number < self.passes or not before.undisturbed
                if wanted and before.seconds < _SLOW_SECONDS:
                    best[sample] = min(before, self._time(sample), key=lambda one: (not one.undisturbed, one.seconds))
        return best

    def _time(self, sample: Sample) -> KernelTiming:
        self.progress(f"{sample.family}: {sample.label}", self.done)
        self.done += 1
        return time_quietest(sample.run, self.device, seconds=0.2 if self.quick else 1.0)


def measurement(sample: Sample, timing: KernelTiming, call_seconds: float) -> Measurement:
    """The kernel's seconds without those of calling compiled code, but at least a quarter of what was read: noise may
    exceed the shortest kernels. `call_seconds` is 0 on CUDA, where calls run ahead of the device."""
    net = max(timing.seconds - (call_seconds if sample.compiled else 0.0), timing.seconds / 4)
    return Measurement(
        sample.family, sample.label, sample.works, sample.bytes_moved, net, timing.spread, sample.written
    )


def _warm_up(run: Callable[[], object], device: str) -> float:
    """Seconds of the second call, above zero."""
    run()
    _synchronize(device)
    return max(_read(run, 1, device), 1e-7)


def _read(run: Callable[[], object], calls: int, device: str) -> float:
    """Seconds of one call, averaged over so many."""
    started = time.perf_counter()
    for _ in range(calls):
        run()
    _synchronize(device)
    return (time.perf_counter() - started) / calls


def _timing(readings: Sequence[float], count: int, *, undisturbed: bool) -> KernelTiming:
    low, median, high = statistics.quantiles(readings, n=4)
    return KernelTiming(median, (high - low) / 2 / median if median else 0.0, count, undisturbed)


def _context_switches(device: str) -> int:
    """Context switches of this process so far; constant where the system does not count them, and on CUDA, where the
    process is expected to wait."""
    if resource is None or device != "cpu":
        return 0
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_nivcsw + usage.ru_nvcsw


def _synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
