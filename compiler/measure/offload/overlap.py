"""How much of a copy hides behind matmuls: both alone, then together. A forecast assumes all of the shorter one.

    hidden = (computing + copying - both) / min(computing, copying)

Copies may hide less where the two share what is scarce: memory bandwidth of the device, or cores where the CPU copies.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

import torch

from autockpt.cost_models.calibration import IN, OUT, time_kernel
from autockpt.measure.timing import interleaved_times
from autockpt.offload import OFFLOAD, RELOAD, WAIT, prepare
from autockpt.units import Progress

_BYTES = {"cpu": 2**24, "cuda": 2**28}
_WIDTH = {"cpu": 512, "cuda": 4096}
"""Of the matmuls, by device type."""
_ROUNDS = 11


@dataclass(frozen=True)
class CopyOverlap:
    direction: str
    nbytes: int
    compute_seconds: float
    copy_seconds: float
    both_seconds: float

    @property
    def hidden(self) -> float:
        saved = self.compute_seconds + self.copy_seconds - self.both_seconds
        return saved / min(self.compute_seconds, self.copy_seconds)


def measure_overlap(
    device: torch.device, progress: Progress = lambda _: None, rounds: int = _ROUNDS
) -> list[CopyOverlap]:
    """For each direction, beside matmuls that take about as long as the copy."""
    source = torch.zeros(_BYTES[device.type], dtype=torch.uint8, device=device)
    prepare(device, [source.numel()] * 2)
    host = WAIT(OFFLOAD(source), source)
    starts: dict[str, Callable[[], tuple[torch.Tensor, torch.Tensor]]] = {
        OUT: lambda: (OFFLOAD(source), source),
        IN: lambda: (RELOAD(host, device), host),
    }
    return [_measured(direction, start, device, rounds, progress) for direction, start in starts.items()]


def _measured(
    direction: str,
    start: Callable[[], tuple[torch.Tensor, torch.Tensor]],
    device: torch.device,
    rounds: int,
    progress: Progress,
) -> CopyOverlap:
    x = torch.randn(_WIDTH[device.type], _WIDTH[device.type], device=device)

    def copy() -> None:
        WAIT(*start())

    one, copied = (time_kernel(run, str(device)).seconds for run in (lambda: x @ x, copy))
    count = max(round(copied / one), 1)

    def compute() -> None:
        for _ in range(count):
            _ = x @ x

    def both() -> None:
        started = start()
        compute()
        WAIT(*started)

    times = interleaved_times({"compute": compute, "copy": copy, "both": both}, rounds, progress)
    middle = {name: statistics.median(taken) for name, taken in times.items()}
    return CopyOverlap(direction, _BYTES[device.type], middle["compute"], middle["copy"], middle["both"])
