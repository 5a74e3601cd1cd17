"""Planning times beside torch's partitioner, which may not finish."""

from __future__ import annotations

import pytest
from rich.console import Console

from autockpt.bench.planner.scale import PartitionTiming, ScaleRow, scale_table


def row(*torch: PartitionTiming) -> ScaleRow:
    ours, absolute = PartitionTiming("halfway", 0.5, 1.0), PartitionTiming("in bytes", 0.25, 0.5)
    return ScaleRow(3000, ours, absolute, torch, limit_seconds=60.0)


def test_a_partitioner_that_did_not_finish_counts_with_the_limit() -> None:
    unfinished = PartitionTiming("torch 0.5", None, None)
    assert row(unfinished).ratios(unfinished) == (120.0, 60.0)
    assert row(unfinished).budget_ratio == 240.0


@pytest.mark.parametrize(
    ("timing", "text"),
    [(PartitionTiming("torch 1.0", 5.0, 6.0), "5.00 s"), (PartitionTiming("", None, None), "not in 60 s")],
)
def test_the_table_shows_times_and_limits(timing: PartitionTiming, text: str) -> None:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(scale_table([row(timing)]))
    assert text in captured.get()
