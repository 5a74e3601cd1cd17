"""`autockpt devices` lists what there is and marks what this machine would use."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from autockpt.cli import main
from autockpt.cost_models import load_profile, shipped_profiles
from autockpt.machine.hardware import default_device
from autockpt.machine.profiles import calibrated_path, save_profile, shipped_profile


@pytest.fixture(autouse=True)
def empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOCKPT_CACHE_DIR", str(tmp_path / "cache"))


def as_json(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    assert main(["devices", "--json"]) == 0
    shown: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return shown


def test_every_shipped_profile_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    shown = capsys.readouterr()
    assert all(name in shown.out for name in shipped_profiles())
    assert "80.00 GiB" in shown.out
    assert shown.err == ""


def test_json_is_nothing_but_json(capsys: pytest.CaptureFixture[str]) -> None:
    shown = as_json(capsys)
    assert [one["name"] for one in shown] == shipped_profiles()
    for one in shown:
        profile = load_profile(str(one["name"]))
        assert (one["memory_bytes"], one["source"]) == (profile.memory_bytes, profile.source)


def test_the_one_that_fits_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    assert [one["name"] for one in as_json(capsys) if one["default"]] == [shipped_profile(default_device()).name]


def test_a_calibrated_profile_is_listed_first_and_marked(capsys: pytest.CaptureFixture[str]) -> None:
    path = calibrated_path(default_device())
    save_profile(replace(load_profile("cpu"), name="mine"), path)
    shown = as_json(capsys)
    assert shown[0]["name"] == "mine"
    assert shown[0]["calibrated"] == str(path)
    assert [one["name"] for one in shown if one["default"]] == ["mine"]


def test_a_broken_calibrated_profile_is_named_and_not_marked(capsys: pytest.CaptureFixture[str]) -> None:
    path = calibrated_path(default_device())
    path.parent.mkdir(parents=True)
    path.write_text("")
    assert main(["devices"]) == 0
    shown = capsys.readouterr()
    assert str(path) in shown.err
    assert len(shown.err.strip().splitlines()) == 1
    assert "*" in shown.out
