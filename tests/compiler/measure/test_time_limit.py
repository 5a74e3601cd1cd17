"""Functions in a subprocess with a time limit: their result, their time, and their failures."""

from __future__ import annotations

import os
import signal
import time

import pytest

from autockpt.errors import AutockptError
from autockpt.measure.time_limit import within_seconds


def test_what_takes_longer_than_its_limit_is_stopped() -> None:
    assert within_seconds(0.2, float, time.sleep, 600) is None


def test_what_finishes_returns_its_result() -> None:
    assert within_seconds(60, float, abs, -3) == 3.0


def test_a_subprocess_that_exits_is_reported_with_its_exit_code() -> None:
    with pytest.raises(AutockptError, match="ended with exit code 7 without a result"):
        within_seconds(60, int, os._exit, 7)


def test_a_subprocess_that_exits_while_it_prepares_is_reported_too() -> None:
    with pytest.raises(AutockptError, match="ended with exit code 7 without a result"):
        within_seconds(60, os._exit, abs, 7)


def test_a_subprocess_that_is_killed_is_reported_with_the_signal() -> None:
    with pytest.raises(AutockptError, match="was ended by SIGKILL without a result"):
        within_seconds(60, int, signal.raise_signal, signal.SIGKILL)


def test_an_exception_is_reported_with_its_message() -> None:
    with pytest.raises(AutockptError, match="failed: ValueError: could not convert string to float: 'x'"):
        within_seconds(60, float, abs, "x")
