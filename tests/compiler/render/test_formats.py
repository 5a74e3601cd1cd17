"""The format of a saved analysis follows the end of the file's name."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from report_sample import sample_report

from autockpt.errors import AutockptError
from autockpt.render.chrome_trace import chrome_trace
from autockpt.render.formats import check_writable, save, save_as
from autockpt.render.memory_snapshot import memory_snapshot
from autockpt.render.page import page


def test_the_end_of_the_name_chooses_the_format(tmp_path: Path) -> None:
    report = sample_report()
    for name in ("report.json", "my.trace.json", "page.html", "snapshot.pickle"):
        save(report, str(tmp_path / name))

    assert json.loads((tmp_path / "report.json").read_text()) == report
    assert json.loads((tmp_path / "my.trace.json").read_text()) == chrome_trace(report)
    assert (tmp_path / "page.html").read_text() == page(report)
    assert pickle.loads((tmp_path / "snapshot.pickle").read_bytes()) == memory_snapshot(report)


def test_a_format_may_be_asked_for_by_its_end(tmp_path: Path) -> None:
    save_as(sample_report(), str(tmp_path / "anything"), ".json")

    assert json.loads((tmp_path / "anything").read_text()) == sample_report()


def test_an_unknown_end_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(AutockptError, match=r"is saved as one of \*trace.json, \*.json, \*.html, \*.pickle"):
        save(sample_report(), str(tmp_path / "report.txt"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "why"), [("missing/report.json", "there is no folder"), ("folder.json", "it is a folder")]
)
def test_a_path_that_cannot_be_written_is_one_sentence(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "folder.json").mkdir()
    for refuse in (check_writable, lambda path: save(sample_report(), path)):
        with pytest.raises(AutockptError, match=f"{name} cannot be written: {why}"):
            refuse(str(tmp_path / name))


def test_a_report_that_is_not_json_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    with pytest.raises(ValueError, match="JSON compliant"):
        save(sample_report() | {"overhead": float("nan")}, str(path))

    assert path.read_text() == "old"
