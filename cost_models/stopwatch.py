"""Samples in, timings out, on a machine that has slow seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from autockpt.cost_models.measure import Timing, time_quietest
from autockpt.cost_models.sample import Measurement, Sample

Progress = Callable[[str, int], None]
"""Told what is timed next, and how many readings are done."""
PASSES = 3
_RETRIES = 3
"""Passes for those that were disturbed in all passes before."""
_SLOW_SECONDS = 0.1


def measurement(sample: Sample, timing: Timing, call_seconds: float) -> Measurement:
    """On CUDA a call runs ahead of the device and takes nothing; noise may leave nothing of the shortest kernels."""
    net = max(timing.seconds - (call_seconds if sample.compiled else 0.0), timing.seconds / 4)
    return Measurement(
        sample.family, sample.label, sample.works, sample.bytes_moved, net, timing.spread, sample.written
    )


@dataclass
class Stopwatch:
    device: str
    quick: bool
    progress: Progress
    passes: int = PASSES
    done: int = 0

    def time_all(self, samples: Iterable[Sample]) -> dict[Sample, Timing]:
        """The best of several passes over all samples: a machine has slow seconds, and no kernel shall be the one that
        met them every time."""
        best: dict[Sample, Timing] = {}
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

    def _time(self, sample: Sample) -> Timing:
        self.progress(f"{sample.family}: {sample.label}", self.done)
        self.done += 1
        return time_quietest(sample.run, self.device, seconds=0.2 if self.quick else 1.0)
