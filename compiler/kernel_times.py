"""Where the time of a real step goes: kernels of torch's libraries by family, and everything else."""

from __future__ import annotations

import time

from torch.profiler import ProfilerActivity, profile

from autockpt.measure import Step
from autockpt.passes.clock import Family, Times

_STEPS = 5
_NAMES = {
    Family.ATTENTION: ("scaled_dot_product", "flash_attention"),
    Family.CONVOLUTION: ("conv",),
    Family.MATMUL: ("::mm", "::addmm", "::bmm", "::baddbmm"),
}


def kernel_seconds(step: Step) -> Times:
    """Of one step, the mean of a few, under a profiler that sees torch's kernels but not Inductor's loops."""
    step()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
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
