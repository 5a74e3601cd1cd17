"""Time one operator call in the middle of a compilation, without side effects on it.

A joint graph is partitioned under AOTAutograd's fake-tensor mode, and the user's random state, gradient mode and
autocast belong to the training step: all of them are disabled or forked here, and restored.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import _disable_current_modes

from autockpt.cost_models.calibration import time_kernel
from autockpt.inductor import NotRunnable, RunnableCall
from autockpt.machine.memory import free_bytes

_FREE_SHARE = 0.5
"""Of the free memory, for arguments and results of one call."""


@contextmanager
def undisturbed(device: torch.device) -> Iterator[None]:
    """Real tensors, no gradients, no autocast, and a forked random state."""
    cuda = [device.index or 0] if device.type == "cuda" else []
    with (
        _disable_current_modes(),
        torch.no_grad(),
        torch.autocast(device.type, enabled=False),
        torch.random.fork_rng(devices=cuda),
    ):
        yield
    if cuda:
        torch.cuda.empty_cache()


def time_call(call: RunnableCall, deadline: float) -> float:
    """Seconds of one call. Raises `NotRunnable` if it is too large or the deadline (of `time.perf_counter`) is over."""
    _check_time(deadline)
    if call.nbytes > _FREE_SHARE * free_bytes(call.device):
        raise NotRunnable("its tensors would fill half of the free memory")
    run = call.real()

    def run_in_time() -> object:
        _check_time(deadline)
        return run()

    return time_kernel(run_in_time, str(call.device)).seconds


def _check_time(deadline: float) -> None:
    if time.perf_counter() > deadline:
        raise NotRunnable("the time for timing was over")
