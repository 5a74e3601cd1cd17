"""`autockpt verify` of several models: one process each, and a row for a model that does not run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autockpt.cli import main
from autockpt.commands.console import Children
from autockpt.errors import AutockptError
from autockpt.measure.verify import Verdict


def test_a_model_that_does_not_run_is_one_row_of_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = []

    def run(self: Children, target: str, command: list[str], progress: object) -> list[dict[str, object]]:
        commands.append(command)
        if target == "models.py:broken":
            raise AutockptError("did not run: exit code 9: no such weights")
        verdict = Verdict(target, "0.5", budget_bytes=100, measured_bytes=98, forecast_bytes=98, gradients="equal")
        return [verdict.as_json() | {"details": ""}]

    monkeypatch.setattr(Children, "run", run)
    file = tmp_path / "verdicts.json"
    (tmp_path / "models.py").write_text("good = broken = print")
    monkeypatch.chdir(tmp_path)
    words = ["models.py:good", "models.py:broken", "--budget", "0.5", "--set", "dtype=bf16", "--jobs", "2"]
    assert main(["verify", *words, "--json", str(file)]) == 1
    assert commands == [["verify", "--budget", "0.5", "--set", "dtype='bf16'"]] * 2
    assert [row["broken"] for row in json.loads(file.read_text())] == [[], ["did not run"]]
    shown = capsys.readouterr()
    assert "exit code 9: no such weights" in shown.out
    assert "no peak falls by more than 1 % where a budget rises" in shown.out
    assert "2 of 2 models" in shown.err
