"""A training step from a script: run at every call, and `sys.path` as the script left it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from autockpt.errors import AutockptError
from autockpt.measure.factory import load_factory


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A copy of `sys.path` that the test may change."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    return list(sys.path)


def script(folder: Path, text: str) -> str:
    (folder / "script.py").write_text(f"import sys\n{text}\ndef factory(): return seen\n")
    return f"{folder / 'script.py'}:factory"


def test_a_script_finds_modules_beside_it(tmp_path: Path, path: list[str]) -> None:
    (tmp_path / "beside_the_script.py").write_text("value = 3\n")
    assert load_factory(script(tmp_path, "from beside_the_script import value as seen"))() == 3
    assert sys.path == path


def test_an_entry_that_the_script_inserts_stays_and_ours_goes(tmp_path: Path, path: list[str]) -> None:
    load_factory(script(tmp_path, "sys.path.insert(0, '/inserted'); seen = None"))
    assert sys.path == ["/inserted", *path]


def test_a_script_may_remove_its_own_folder(tmp_path: Path, path: list[str]) -> None:
    load_factory(script(tmp_path, "del sys.path[0]; seen = None"))
    assert sys.path == path


def test_a_script_that_fails_is_one_sentence_and_leaves_the_path(tmp_path: Path, path: list[str]) -> None:
    with pytest.raises(AutockptError, match=r"script.py does not run: ZeroDivisionError: division by zero"):
        load_factory(script(tmp_path, "1 / 0"))
    assert sys.path == path


def test_every_call_runs_the_script_again(tmp_path: Path) -> None:
    target = script(tmp_path, "seen = object()")
    assert load_factory(target)() is not load_factory(target)()
