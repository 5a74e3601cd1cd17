"""The command line answers in a table, in JSON, or in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autockpt.cli import main
from autockpt.cost_models import load_profile, shipped_profiles


def test_devices_lists_every_shipped_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    shown = capsys.readouterr()
    assert all(name in shown.out for name in shipped_profiles())
    assert "80.00 GiB" in shown.out
    assert shown.err == ""


def test_devices_as_json_is_nothing_but_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert sorted(shown) == shipped_profiles()
    for name, fields in shown.items():
        profile = load_profile(name)
        assert fields == {"memory_bytes": profile.memory_bytes, "source": profile.source}


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
