"""Every baseline of a real step, and a word wherever ours is behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from autockpt.bench.planned_baselines import BaselineRow, Cost, baseline_table, bench_baselines
from autockpt.passes.planners.baselines import BASELINES

SCRIPT = """
import torch
from torch import nn

def factory():
    layers = [nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)) for _ in range(3)]
    return nn.Sequential(*layers), (torch.randn(32, 16),)
"""


def row(theirs: Cost, ours: Cost) -> BaselineRow:
    return BaselineRow(0, "baseline", theirs, ours, min_peak_bytes=0)


def test_a_step_is_compared_with_every_baseline(tmp_path: Path) -> None:
    script = tmp_path / "step.py"
    script.write_text(SCRIPT)
    rows = bench_baselines(f"{script}:factory", lambda _: None, torch_budgets=(1.0, 0.5))

    assert [row.name for row in rows] == [*BASELINES, "torch 1.0", "torch 0.5"]
    assert rows[0].theirs.recompute_seconds <= rows[1].theirs.recompute_seconds
    assert all(row.min_peak_bytes <= row.ours.peak_bytes for row in rows)
    assert baseline_table(rows).row_count == len(rows) + 1


@pytest.mark.parametrize(
    ("ours", "behind"),
    [
        (Cost(90, 1.0, 2.0), ""),
        (Cost(110, 0.5, 1.0), "does not fit"),
        (Cost(90, 1.5, 3.0), "slower"),
        (Cost(90, 1.5, 1.8), ""),
    ],
    ids=["equal", "over the peak", "slower", "recomputes more but moves less"],
)
def test_ours_is_behind_where_it_is_over_the_peak_or_slower(ours: Cost, behind: str) -> None:
    assert row(Cost(100, 1.0, 2.0), ours).behind == behind
