"""`autockpt bench plan`: one door, five questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autockpt.bench.gaps import DepthRow, GapRow, exponent, gap_summary
from autockpt.cli import main

SCRIPT = """
import torch
from torch import nn

def tower(layers: int = 3):
    blocks = [nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(layers)]
    return nn.Sequential(*blocks, nn.Linear(32, 1)), (torch.randn(64, 32),)
"""


@pytest.fixture
def target(tmp_path: Path) -> str:
    path = tmp_path / "tower.py"
    path.write_text(SCRIPT)
    return f"{path}:tower"


def test_models_give_gaps(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "plan", target, "--budget", "0.0", "0.5", "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["budget"] for row in rows] == [0.0, 0.5]
    assert all(row["peak_bytes"] <= row["budget_bytes"] for row in rows)
    assert all(0.0 <= row["gap"] <= row["overhead"] + 1e-9 for row in rows)


def test_depth_gives_floors_and_the_power_that_fits_them(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "plan", "--depth", target, "--layers", "2", "4"]) == 0
    assert "bytes beyond grow as depth to the" in capsys.readouterr().out


def test_baselines_are_never_ahead_on_a_tower(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "plan", "--baselines", target]) == 0
    assert "keep everything" in capsys.readouterr().out


def test_the_exponent_of_a_square_root_is_a_half() -> None:
    rows = [DepthRow(n, 0, 0, int(1e6 * n**0.5), "cut", 0.0, 0.0) for n in (4, 16, 64)]
    assert exponent(rows) == pytest.approx(0.5, abs=1e-3)


def test_the_summary_names_median_and_worst() -> None:
    rows = [GapRow("a", 0.5, 1, 1, "cut", 0.1, gap, 0.5, gap, 0.1) for gap in (0.01, 0.02, 0.09)]
    assert gap_summary(rows) == "gap to every plan, of step time: median 2.0%, worst 9.0%, 3 plans"
