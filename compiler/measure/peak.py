"""The measured peak of a real step, from the allocation events of its device."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence

import torch

from autockpt.cost_models.memory import measured_peaks

Step = Callable[[], object]


def measure_peak(step: Step, device: torch.device) -> int:
    """Largest number of live bytes during one step, less the bytes that were live before it."""
    return measure_peaks([step], device)[0]


def measure_peaks(steps: Sequence[Step], device: torch.device) -> list[int]:
    """The same for several steps, one after the other."""
    gc.collect()
    return measured_peaks(steps) if device.type != "cuda" else [_cuda_peak(step, device) for step in steps]


def _cuda_peak(step: Step, device: torch.device) -> int:
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    step()
    torch.cuda.synchronize(device)
    return int(torch.cuda.max_memory_allocated(device) - before)
