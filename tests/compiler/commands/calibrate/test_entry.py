"""`autockpt calibrate` from the outside, with made-up measurements."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from autockpt.cli import main
from autockpt.commands.calibrate import entry as calibrate_command
from autockpt.cost_models import Calibration, Work, load_profile
from autockpt.cost_models import calibration as calibration_room
from autockpt.cost_models.calibration.fit import fit, quality
from autockpt.cost_models.calibration.sample import Measurement
from autockpt.cost_models.profiles import read_profile
from autockpt.machine.profiles import calibrated_path, find_profile


def measured(family: str, seconds: float, **work: Any) -> Measurement:
    moved = work.pop("bytes_moved", 0.0)
    return Measurement(family, "one", (Work(**work),), moved, seconds, 0.1)


KERNELS = (
    measured("matmul", 1e-3, matrix_flops=1e8),
    measured("cheap", 1e-3, elements=1e7),
    measured("random", 1e-2, random_numbers=1e6),
    measured("traffic", 1e-3, bytes_moved=2.0**25),
    measured("layers", 2e-3, elements=1e7),
)


def calibration(name: str = "mine") -> Calibration:
    profile = fit(KERNELS, name=name, source="made up", kind="cpu", memory_bytes=0, launch_seconds=1e-6)
    facts = quality(KERNELS, profile)
    return Calibration(replace(profile, calibration=facts), KERNELS, ("bfloat16 left out: why",))


@pytest.fixture(autouse=True)
def quick_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOCKPT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(calibration_room, "calibrate", lambda device, quick, progress, name: calibration(name))


def test_the_profile_is_found_on_this_machine_afterwards(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--device", "cpu"]) == 0
    assert find_profile(torch.device("cpu")).source == "made up"
    shown = capsys.readouterr()
    assert "matmul" in shown.out
    assert "off by" in shown.out
    assert "bfloat16 left out: why" in shown.out
    assert str(calibrated_path(torch.device("cpu"))) in shown.err


def test_output_writes_the_profile_and_its_plot_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    assert main(["calibrate", "--device", "cpu", "-o", str(path)]) == 0
    assert read_profile(path).vector_flops_per_second == calibration().profile.vector_flops_per_second
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mine.json", "mine.png"]


def test_json_has_every_measurement_and_its_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--json", "-o", str(tmp_path / "mine.json")]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert len(shown["measurements"]) == len(KERNELS)
    assert shown["calibration"]["kernels"] == len(KERNELS)
    assert shown["measurements"][-1]["error"] == pytest.approx(-0.5, abs=0.01)


def test_an_interrupt_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(calibration_room, "calibrate", interrupt)
    assert main(["calibrate", "-o", str(tmp_path / "mine.json")]) == 130
    assert "stopped" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_it_says_so_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calibrate_command, "find_spec", lambda _: None)
    assert main(["calibrate", "-o", str(tmp_path / "mine.json")]) == 0
    assert "needs matplotlib" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["mine.json"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        pytest.param(["--device", "abacus"], "no device", id="no device"),
        pytest.param(["--device", "cuda:99"], "not on this machine", id="not here"),
        pytest.param(["--device", "meta"], "not on this machine", id="nothing to time"),
        pytest.param(["--plot", "fit.jsonx"], "a plot is one of", id="no picture"),
        pytest.param(["-o", "/dev/null/mine.json"], "cannot be written", id="no folder"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    assert main(["calibrate", *arguments]) == 2
    shown = capsys.readouterr()
    assert why in shown.err
    assert len(shown.err.strip().splitlines()) == 1


def test_the_profile_before_is_still_there_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["calibrate", "--device", "cpu"]) == 0

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(calibration_room, "calibrate", interrupt)
    assert main(["calibrate", "--device", "cpu"]) == 130
    assert find_profile(torch.device("cpu")) != load_profile("cpu")
