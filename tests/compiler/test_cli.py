"""The command line answers in a table, in JSON, or in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from autockpt.cli import main


@pytest.mark.parametrize(
    ("target", "why"),
    [
        pytest.param("nowhere.py:build", "is not SCRIPT.py:FACTORY", id="no such script"),
        pytest.param("{script}", "is not SCRIPT.py:FACTORY", id="no factory given"),
        pytest.param("{script}:biuld", "has no function 'biuld'", id="no such factory"),
        pytest.param("{script}:NUMBER", "has no function 'NUMBER'", id="not a function"),
        pytest.param("{script}:", "has no function ''", id="empty factory"),
        pytest.param("", "is not SCRIPT.py:FACTORY", id="empty"),
    ],
)
def test_a_wrong_bench_target_is_one_sentence_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str, why: str
) -> None:
    script = tmp_path / "model.py"
    script.write_text("NUMBER = 1\n\ndef build():\n    raise AssertionError\n")
    assert main(["bench", target.format(script=script)]) == 2
    shown = capsys.readouterr()
    assert shown.out.strip() == ""
    assert len(shown.err.strip().splitlines()) == 1
    assert shown.err.strip().startswith("autockpt: ")
    assert why in shown.err


@pytest.mark.parametrize("arguments", [[], ["bnech"], ["bench"], ["bench", "a.py:b", "--steps", "many"]])
def test_a_wrong_command_is_a_usage_error(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "usage: autockpt" in capsys.readouterr().err
