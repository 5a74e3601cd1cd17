"""A partitioner that does not finish is stopped and said to be so."""

from __future__ import annotations

import time

import pytest
from rich.console import Console

from autockpt.bench.scale import ScaleRow, Timing, scale_table, within_seconds


def row(*torch: Timing) -> ScaleRow:
    return ScaleRow(3000, Timing("half way", 0.5, 1.0), Timing("in bytes", 0.25, 0.5), torch, limit_seconds=60.0)


def test_what_takes_longer_than_its_limit_is_ended() -> None:
    assert within_seconds(0.2, float, time.sleep, 600) is None


def test_what_finishes_gives_its_result() -> None:
    assert within_seconds(60, float, abs, -3) == 3.0


def test_who_did_not_finish_is_slower_by_at_least_the_limit() -> None:
    slow = Timing("torch 0.5", None, None)
    assert row(slow).faster(slow) == (120.0, 60.0)


@pytest.mark.parametrize(
    ("timing", "text"), [(Timing("torch 1.0", 5.0, 6.0), "5.00 s"), (Timing("", None, None), "not in 60 s")]
)
def test_the_table_says_who_finished(timing: Timing, text: str) -> None:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(scale_table([row(timing)]))
    assert text in captured.get()
