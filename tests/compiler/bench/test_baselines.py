"""Baselines of a step: planned beside ours, and the blocks that a checkpoint is put around."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

from autockpt.bench.baselines import BaselineRow, PlanCost, baseline_table, bench_baselines
from autockpt.measure import find_blocks
from autockpt.passes.planners.baselines import BASELINES

SCRIPT = """
import torch
from torch import nn

def factory():
    layers = [nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)) for _ in range(3)]
    return nn.Sequential(*layers), (torch.randn(32, 16),)
"""


def row(theirs: PlanCost, ours: PlanCost) -> BaselineRow:
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
        (PlanCost(90, 1.0, 2.0), ""),
        (PlanCost(110, 0.5, 1.0), "does not fit"),
        (PlanCost(90, 1.5, 3.0), "slower"),
        (PlanCost(90, 1.5, 1.8), ""),
    ],
    ids=["equal", "over the peak", "slower", "recomputes more but moves less"],
)
def test_ours_is_behind_where_it_is_over_the_peak_or_slower(ours: PlanCost, behind: str) -> None:
    assert row(PlanCost(100, 1.0, 2.0), ours).behind == behind


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleList(nn.Sequential(nn.Linear(2, 2)) for _ in range(4))


class Other(Block):
    pass


def test_blocks_are_the_members_of_a_list_not_what_is_inside_them() -> None:
    blocks = nn.ModuleList(Block() for _ in range(3))
    assert find_blocks(nn.Sequential(nn.Linear(2, 2), nn.ModuleDict({"layers": blocks}))) == list(blocks)


def test_blocks_of_an_encoder_and_a_decoder_and_of_every_stage_are_all_found() -> None:
    encoder, decoder = nn.Sequential(Block(), Block()), nn.ModuleList([Other(), Other()])
    assert find_blocks(nn.ModuleDict({"encoder": encoder, "decoder": decoder})) == [*encoder, *decoder]
    stages = nn.Sequential(nn.Sequential(Block(), Block()), nn.Sequential(Other(), Block(), Block()))
    assert find_blocks(stages) == [*stages[0], *stages[1][1:]]


def test_single_operators_in_a_row_are_no_blocks() -> None:
    assert find_blocks(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU())) == []
    assert find_blocks(nn.ModuleList([nn.TransformerEncoderLayer(2, 1)])) == []
