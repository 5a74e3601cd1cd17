"""The measured peak of a real step, from the allocation events of its device."""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch

from autockpt.cost_models.memory import measured_peak

Step = Callable[[], object]


def measure_peak(step: Step, device: torch.device) -> int:
    """Largest number of live bytes during one step, less the bytes that were live before it."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        step()
        torch.cuda.synchronize(device)
        return int(torch.cuda.max_memory_allocated(device) - before)
    return measured_peak(step)
