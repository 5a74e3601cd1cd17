"""Time one kernel honestly: warmed up, until it is long enough to be read, the median and its spread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Timing:
    seconds: float
    """The median of the runs."""
    spread: float
    """Half of what lies between the quartiles, as a share of the median."""
    runs: int


def time_kernel(run: Callable[[], object], device: str = "cpu", *, least_seconds: float = 0.03) -> Timing:
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
    return Timing(median, (high - low) / 2 / median if median else 0.0, len(readings))


def time_quietest(run: Callable[[], object], device: str = "cpu", *, seconds: float = 0.1) -> Timing:
    """Seconds of one call where others use the machine too: readings are taken for so long, and the median is that of
    the five in a row that were least disturbed. Whatever else runs only ever makes a kernel slower."""
    run()
    _wait(device)
    calls = max(1, round(_READING / max(_read(run, 1, device), 1e-7)))
    readings: list[float] = []
    started = time.perf_counter()
    while len(readings) < _IN_A_ROW or (time.perf_counter() - started < seconds and len(readings) < 2000):
        readings.append(_read(run, calls, device) / calls)
    rows = range(len(readings) - _IN_A_ROW + 1)
    median = min(statistics.median(readings[start : start + _IN_A_ROW]) for start in rows)
    low, _, high = statistics.quantiles(readings, n=4)
    return Timing(median, (high - low) / 2 / median, len(readings))


_READING = 1e-4
"""Seconds that the clock reads without an error that counts, and that a busy scheduler often leaves alone."""
_IN_A_ROW = 5


def _read(run: Callable[[], object], calls: int, device: str) -> float:
    started = time.perf_counter()
    for _ in range(calls):
        run()
    _wait(device)
    return time.perf_counter() - started


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
