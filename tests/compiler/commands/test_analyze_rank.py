"""`autockpt analyze --world-size`: one rank of a job that is not here, or every stage of its pipeline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autockpt.cli import main

FACTORIES = str(Path(__file__).parents[2] / "rank_factories.py")
WHAT = ["--device", "cpu", "--no-what-if", "--budget", "1GiB"]


def test_a_rank_is_named_with_its_share_and_the_parts_of_its_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.json"
    command = ["analyze", f"{FACTORIES}:fsdp", "--world-size", "4", "--rank", "1", "--json", str(path), *WHAT]
    assert main(command) == 0
    shown, report = capsys.readouterr().out, json.loads(path.read_text())
    assert report["rank"]["rank"], report["rank"]["world_size"] == (1, 4)
    assert f"1 of 4, with {report['rank']['parameters']:,} parameters" in shown
    assert "collectives around them" in shown
    assert "gathered parameters" in shown


def test_all_stages_are_a_row_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "reports.json"
    command = ["analyze", f"{FACTORIES}:pipeline", "--world-size", "2", "--all-stages", "--json", str(path), *WHAT]
    assert main(command) == 0
    reports = json.loads(path.read_text())
    assert [report["rank"]["stages"] for report in reports] == [[0], [1]]
    assert "minimum peak" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rank", "1"], "rank=1 is of no job"),
        (["--world-size", "4", "--rank", "4"], "ranks 0 to 3"),
        (["--all-stages"], "--all-stages needs one target and --world-size"),
        (["--world-size", "2", "--lower"], "not run dry"),
    ],
)
def test_wrong_use_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", f"{FACTORIES}:fsdp", *arguments, *WHAT]) == 2
    assert message in capsys.readouterr().err
