"""`autockpt calibrate --host-link` on the CPU, and what is refused; a GPU's calibration includes its link."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from autockpt.cli import main
from autockpt.commands.calibrate import entry, host_link
from autockpt.cost_models import load_profile
from autockpt.cost_models.calibration import CalibratedLink, Calibration

LINK = CalibratedLink({"out": 5e10, "in": 6e10}, 1e-5, 3e9, 8, ())


def test_the_cpu_gets_a_link_where_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "linked.json"
    assert main(["calibrate", "--host-link", "--device", "cpu", "-o", str(path)]) == 0
    profile = load_profile(str(path))
    assert profile.device_to_host_bytes_per_second > 0
    assert profile.host_to_device_bytes_per_second > 0
    assert profile.pin_bytes_per_second > 0
    shown = capsys.readouterr().out
    assert "link to the host, one device alone, from 12 copies" in shown
    assert f"device to host: {profile.device_to_host_bytes_per_second / 1e9:.2f} GB/s" in shown


def test_json_has_every_copy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--host-link", "--all-devices", "--device", "cpu", "--json", "-o", str(tmp_path / "linked.json")]
    assert main(["calibrate", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["devices"] == 1
    assert len(found["copies"]) == 12


def test_all_devices_of_a_host_are_its_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    found = host_link.devices_of_host(torch.device("cuda", 1))
    assert found == [torch.device("cuda", number) for number in range(3)]
    assert host_link.devices_of_host(torch.device("cpu")) == [torch.device("cpu")]


def test_all_devices_without_a_link_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--all-devices", "--device", "cpu"]) == 2
    assert "--all-devices is for the link to the host" in capsys.readouterr().err


def test_the_calibration_of_a_gpu_has_its_link_of_all_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def measured(device: torch.device, *, all_devices: bool) -> CalibratedLink:
        asked.append((device, all_devices))
        return LINK

    monkeypatch.setattr(host_link, "measured_link", measured)
    monkeypatch.setattr(host_link, "link_lines", lambda link: [f"{link.devices} devices"])
    fitted = replace(load_profile("a10"), device_to_host_bytes_per_second=0.0, host_to_device_bytes_per_second=0.0)
    found = entry._with_host_link(Calibration(fitted, (), ("a note",)), torch.device("cuda", 0), True)
    assert asked == [(torch.device("cuda", 0), True)]
    assert found.profile.device_to_host_bytes_per_second == 5e10
    assert found.profile.host_to_device_bytes_per_second == 6e10
    assert found.notes == ("a note", "8 devices")


def test_the_calibration_of_a_cpu_has_no_link() -> None:
    calibration = Calibration(load_profile("cpu"), (), ())
    assert entry._with_host_link(calibration, torch.device("cpu"), False) is calibration
