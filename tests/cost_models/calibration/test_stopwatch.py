"""Timing with a simulated clock: how often a kernel is called, and which readings count."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from autockpt.cost_models.calibration import stopwatch
from autockpt.cost_models.calibration.stopwatch import time_kernel, time_quietest


class Clock:
    """Each call of the kernel advances the clock by the next duration."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, durations: Iterator[float]) -> None:
        self.now = 0.0
        self.calls = 0
        self.durations = durations
        monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(stopwatch.time, "sleep", lambda seconds: None)

    def run(self) -> None:
        self.calls += 1
        self.now += next(self.durations)


def steady(seconds: float) -> Iterator[float]:
    while True:
        yield seconds


def test_the_median_of_a_steady_kernel_is_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    timing = time_kernel(Clock(monkeypatch, steady(0.01)).run)
    assert timing.seconds == pytest.approx(0.01)
    assert timing.spread == pytest.approx(0.0)


def test_the_first_calls_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def cold() -> Iterator[float]:
        yield 10.0
        yield from steady(0.01)

    assert time_kernel(Clock(monkeypatch, cold()).run).seconds == pytest.approx(0.01)


def test_short_kernels_share_a_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, steady(1e-6))
    timing = time_quietest(clock.run)
    assert clock.calls > 50 * timing.readings
    assert timing.seconds == pytest.approx(1e-6)


def test_a_burst_in_which_a_thread_lost_its_core_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bursts are of one call to wake up and five readings; every other one is disturbed and faster."""
    clock = Clock(monkeypatch, (0.01 if burst % 2 else 0.02 for burst in _bursts()))
    switches = iter(number // 2 if number // 2 % 2 == 0 else number for number in count())
    monkeypatch.setattr(stopwatch, "_context_switches", lambda device: next(switches))
    timing = time_quietest(clock.run, seconds=10.0)
    assert timing.undisturbed
    assert timing.seconds == pytest.approx(0.02)


def _bursts() -> Iterator[int]:
    """The burst that each call belongs to, after two calls to warm up."""
    yield from (0, 0)
    for burst in count():
        yield from (burst for _ in range(6))


def test_if_every_burst_is_disturbed_the_fastest_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, (0.01 + 0.01 * (call // 6 % 3) for call in count(4)))
    monkeypatch.setattr(stopwatch, "_context_switches", lambda device: clock.calls)
    timing = time_quietest(clock.run, seconds=3.0)
    assert not timing.undisturbed
    assert timing.seconds == pytest.approx(0.01)


def test_three_quiet_bursts_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopwatch, "_context_switches", lambda device: 0)
    assert time_quietest(Clock(monkeypatch, steady(0.01)).run, seconds=100.0).readings == 15
