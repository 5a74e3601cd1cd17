"""Run an operation many times in the middle of a compilation, and leave no trace of it.

A joint graph is divided while AOTAutograd pretends that all tensors are fake, and the user's random state, gradient
mode and autocast are what the training step will meet: all of them are set aside and put back.
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
"""Of free memory: what one operation may take."""


@contextmanager
def undisturbed(device: torch.device) -> Iterator[None]:
    """Real tensors on this device, and a random state that nobody else sees."""
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
    """Seconds of one call. NotRunnable where it is too large or runs past the deadline, a time of `time.perf_counter`."""
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
