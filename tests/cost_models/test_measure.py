"""Timing without a clock to trust: what is called how often, and which readings count."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autockpt.cost_models import measure
from autockpt.cost_models.measure import time_kernel, time_quietest


class Clock:
    """Every call of the kernel takes the next duration."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, durations: Iterator[float]) -> None:
        self.now = 0.0
        self.calls = 0
        self.durations = durations
        monkeypatch.setattr(measure.time, "perf_counter", lambda: self.now)

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
    timing = time_quietest(clock.run, seconds=0.01)
    assert clock.calls > 50 * timing.runs
    assert timing.seconds == pytest.approx(1e-6)


def test_five_quiet_readings_in_a_row_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy() -> Iterator[float]:
        while True:
            yield from (0.08 for _ in range(10))
            yield from (0.01 for _ in range(5))

    timing = time_quietest(Clock(monkeypatch, busy()).run, seconds=3.0)
    assert timing.seconds == pytest.approx(0.01)
    assert timing.spread > 1.0


def test_one_lucky_reading_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy() -> Iterator[float]:
        while True:
            yield from (0.08 for _ in range(9))
            yield 0.01

    assert time_quietest(Clock(monkeypatch, busy()).run, seconds=3.0).seconds == pytest.approx(0.08)
