"""`autockpt bench`: what each of its commands prints, and what it refuses before any work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autockpt.cli import main
from autockpt.passes.planners.frontier import PLANNERS

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


def test_the_budgets_of_models_are_five_from_a_tenth_to_nine_tenths(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "plan", target, "--json", "-"]) == 0
    assert [row["budget"] for row in json.loads(capsys.readouterr().out)] == [0.1, 0.3, 0.5, 0.7, 0.9]


def test_the_ablation_leaves_out_every_generator_in_turn(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "plan", target, "--ablate", "--budget", "0.5", "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["generator"] for row in rows] == [generator.__name__ for generator in PLANNERS["auto"]]
    assert all(row["budgets"] == [0.5] and len(row["seconds"]) == len(row["seconds_without"]) == 1 for row in rows)


def test_depth_gives_minimum_peaks_and_the_power_that_fits_them(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "plan", "--depth", target, "--layers", "2", "4"]) == 0
    assert "grow as depth to the power of" in capsys.readouterr().out


def test_no_baseline_is_better_on_a_tower(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "plan", "--baselines", target]) == 0
    assert "everything" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["budgets", "m.py:f", "--repeats", "0"], "--repeats"),
        (["budgets", "m.py:f", "--steps", "0"], "--steps"),
        (["m.py:f", "--repeats", "0"], "--repeats"),
        (["frontier", "m.py:f", "--budgets", "1.5"], "--budgets"),
        (["overhead", "m.py:f", "--plans", "0"], "--plans"),
        (["overhead", "m.py:f", "--show", "2"], "--show"),
        (["plan", "--sizes", "0"], "--sizes"),
        (["plan", "--layers", "-1"], "--layers"),
        (["plan", "--limit", "0"], "--limit"),
        (["plan", "--limit", "nan"], "--limit"),
    ],
)
def test_a_value_out_of_range_is_a_usage_error_before_any_work(
    arguments: list[str],
    culprit: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "m.py").write_text("def f(): ...")
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"autockpt: {culprit}: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["m.py:f", "--budget", "1.5"], "budget '1.5' is not a fraction"),
        (["m.py:f", "--budget", "half"], "budget 'half' is not a fraction"),
        (["--ablate"], "--ablate needs models"),
        (["--budget", "0.5"], "--budget needs models or --instance"),
        (["--layers", "8"], "--layers needs --depth"),
        (["m.py:f", "--sizes", "1000"], "--sizes is for planning time over graph size"),
        (["m.py:f", "--instance", "a.json"], "one thing at a time"),
    ],
)
def test_what_cannot_be_planned_is_one_sentence_before_any_work(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "m.py").write_text("def f(): ...")
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "plan", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
