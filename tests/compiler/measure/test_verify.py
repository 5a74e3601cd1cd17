"""`autockpt verify`: what it prints and when it fails."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from autockpt.cli import main
from autockpt.measure import step as training
from autockpt.measure import verify as verification
from autockpt.measure.gradients import Comparison, difference
from autockpt.measure.step import load_training
from autockpt.measure.verify import Verdict, verify_target
from autockpt.measure.verify_report import cells, falling_peaks, verify_summary

SCRIPT = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.GELU(), nn.Linear(64, 8))
    def forward(self, x):
        return self.layers(x).square().mean()

def small():
    return Model(), (torch.randn(128, 64),)

def broken():
    raise RuntimeError("no such weights")
"""

GOOD = Verdict(
    target="models.py:net",
    budget="0.3",
    budget_bytes=100 * 2**20,
    forecast_bytes=98 * 2**20,
    compiled_bytes=97 * 2**20,
    measured_bytes=97 * 2**20,
    gradients="equal",
)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "models.py"
    path.write_text(SCRIPT)
    return path


def test_a_line_of_the_table_names_what_is_broken() -> None:
    over = replace(GOOD, measured_bytes=101 * 2**20, broken=("budget",))
    assert "101% OVER" in cells(over)
    assert "1e-02 DIFFERENT" in cells(replace(GOOD, gradients="1e-02", broken=("gradients",)))
    assert "97%" in cells(GOOD)


def test_the_summary_counts_and_gives_every_reason() -> None:
    lines = verify_summary([GOOD, replace(GOOD, forecast_bytes=102 * 2**20, reason="the next faster plan needs 2 GiB")])
    assert "forecast within 3 % of measured: 1 of 2, within 6 %: 2 of 2" in lines
    assert "net at 0.3: the next faster plan needs 2 GiB" in lines


def test_a_peak_that_falls_with_a_larger_budget_is_named() -> None:
    more = replace(GOOD, budget="0.6", budget_bytes=120 * 2**20, measured_bytes=90 * 2**20)
    assert falling_peaks([GOOD, more]) == ["net: from 0.3 to 0.6 measured_bytes FALLS from 97.0 MiB to 90.0 MiB"]
    assert falling_peaks([GOOD, replace(more, measured_bytes=97 * 2**20 - 9)]) == []


def test_a_difference_is_of_the_whole_tensor_and_nothing_hides_behind_nan() -> None:
    ones, nan = torch.ones(4), torch.tensor([1.0, 1.0, 1.0, float("nan")])
    assert difference(ones, ones) == 0.0
    assert difference(nan, nan) == 0.0
    assert difference(nan, ones) == difference(ones, nan) == float("inf")
    assert difference(ones, torch.zeros(4)) == float("inf")
    assert difference(ones * (1 + 1e-3), ones) == pytest.approx(1e-3, rel=1e-3)


def test_equal_means_bitwise_equal() -> None:
    assert str(Comparison(0.0, 0.0, 0.0)) == "equal"
    assert str(Comparison(3e-7, 0.0, 0.0)) == "noise 3e-07"
    assert str(Comparison(3e-7, 2e-7, 0.0)) == "2e-07"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["models.py:none", "--budget", "0.5"], "is not SCRIPT.py:FACTORY"),
        (["{script}:none"], "has no function 'none'"),
        (["{script}:small", "--set", "bath=3"], "--set bath: "),
        (["{script}:small", "--device", "abacus"], "'abacus' is not a device of torch"),
        (["{script}:small", "{script}:small", "--device", "abacus"], "'abacus' is not a device of torch"),
    ],
)
def test_a_wrong_target_is_one_sentence(
    arguments: list[str], message: str, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", *(argument.format(script=script) for argument in arguments)]) == 2
    assert message in capsys.readouterr().err


def test_a_wrong_budget_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--budget", "1.5", "--", "models.py:net"]) == 2
    assert "1.5" in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_here_is_one_sentence(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", f"{script}:small", "--device", "cuda"]) == 2
    assert "there is no device 'cuda' here" in capsys.readouterr().err


def test_model_and_inputs_are_moved_to_the_device(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "device_available", lambda device: True)
    moved = load_training(f"{script}:small", device="meta")
    tensors = [*moved.model.parameters(), *moved.inputs]
    assert {tensor.device.type for tensor in tensors} == {"meta"}


@pytest.mark.inductor
def test_every_promise_holds_for_a_small_model(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, page = tmp_path / "verdicts.json", tmp_path / "table.md"
    arguments = ["verify", f"{script}:small", "--budget", "900KiB", "--json", str(file), "--markdown", str(page)]
    assert main(arguments) == 0
    (row,) = json.loads(file.read_text())
    assert row["measured_bytes"] <= row["budget_bytes"]
    assert row["compiled_error"] == pytest.approx(0.0, abs=0.01)
    assert row["gradients"] == "equal"
    assert "| small | 900KiB |" in page.read_text()
    assert "by module" in capsys.readouterr().out


@pytest.mark.inductor
def test_a_peak_over_the_budget_is_a_broken_promise(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "measure_peak", lambda step, device: 2**30)
    ((verdict, _),) = verify_target(f"{script}:small", [1.0], lambda text: None)
    assert verdict.broken == ("budget",)
