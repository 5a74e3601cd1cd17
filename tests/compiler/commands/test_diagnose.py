"""`autockpt diagnose` on files, good and bad."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autockpt.cli import main

SHIPPED = str(Path(__file__).parents[3] / "examples" / "oom_snapshot.pickle")


def test_a_snapshot_is_diagnosed_as_text_json_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, report = tmp_path / "d.html", tmp_path / "d.json"

    assert main(["diagnose", SHIPPED, "--html", str(page), "--json", str(report)]) == 0
    shown = capsys.readouterr().out
    assert "It ran out" in shown
    assert "gpt.py:25" in shown
    assert json.loads(report.read_text())["remedy"] is None
    assert "gpt.py:25" in page.read_text()


def test_json_is_nothing_but_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", SHIPPED, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["ran_out"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-file.pickle"], "no-such-file.pickle"),
        ([__file__], "is no pickle, or damaged"),
        ([SHIPPED, "--gpu", "5"], "nothing of device 5"),
        ([SHIPPED, "--gpu", "-1"], "--gpu"),
        ([SHIPPED, "--set", "batch=2"], "--set needs --model"),
        ([SHIPPED, "--model", "nothing.py:gpt"], "nothing.py"),
    ],
)
def test_wrong_use_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
