"""The command line answers in a table, in JSON, or in one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import autockpt
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
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"autockpt{' bench' if arguments[:1] == ['bench'] else ''}" in shown.err
    assert arguments in ([], ["bench"]) or len(shown.err.splitlines()) == 1


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"autockpt {autockpt.__version__}\n"


BENCHES = ["bench budgets", "bench frontier", "bench ledger", "bench overhead", "bench plan", "bench step"]


@pytest.mark.parametrize(
    "command", ["analyze", "calibrate", "verify", "bench", *BENCHES, "run", "devices", "diff", "diagnose"]
)
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main([*command.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: autockpt {command} ")
    assert max(map(len, shown.splitlines())) <= 80


def test_a_mistyped_command_or_option_is_named_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "fronteir", "m.py:f"]) == 2
    assert "no such command 'fronteir'" in (shown := capsys.readouterr().err)
    assert "'frontier'" in shown
    assert main(["verify", "--budgte", "0.5", "m.py:f"]) == 2
    assert "no such option '--budgte'" in (shown := capsys.readouterr().err)
    assert "'--budget'" in shown


def completions(words: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> list[str]:
    """What bash is told for these words, the last of which is not complete."""
    monkeypatch.setenv("_AUTOCKPT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    with pytest.raises(SystemExit):
        main([])
    return [line.partition(",")[2] for line in capfd.readouterr().out.split()]


def test_a_shell_completes_commands_options_and_factories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "model.py"
    script.write_text("def build():\n    pass\n\ndef big():\n    pass\n")
    assert completions("autockpt an", monkeypatch, capfd) == ["analyze"]
    assert completions("autockpt bench ", monkeypatch, capfd) == [
        "budgets",
        "frontier",
        "fuzz",
        "ledger",
        "overhead",
        "plan",
        "start",
        "step",
    ]
    assert completions("autockpt analyze --max", monkeypatch, capfd) == ["--max-batch"]
    assert completions(f"autockpt analyze {script}:b", monkeypatch, capfd) == [f"{script}:big", f"{script}:build"]


_HEAVY = ("torch", "ortools", "rich", "plotly", "matplotlib", "autockpt.cost_models.calibration")


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import autockpt", id="import autockpt"),
        pytest.param(
            "import runpy; sys.argv[1:] = ['--help']; runpy.run_module('autockpt')", id="python -m autockpt --help"
        ),
        pytest.param("import autockpt.cli; autockpt.cli.main(['verify', '--help'])", id="autockpt verify --help"),
        pytest.param("import autockpt.cli; autockpt.cli.main(['bench', '--help'])", id="autockpt bench --help"),
        pytest.param("import autockpt.cli; autockpt.cli.main(['verify', '--jobs', '0'])", id="a wrong value"),
    ],
)
def test_import_and_help_load_nothing_heavy(code: str) -> None:
    program = f"import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); {code}"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stderr.split()
    assert [name for name in loaded if name.startswith(_HEAVY)] == []
    assert sum(name.split(".")[0] == "autockpt" for name in loaded) <= 40


def test_objects_that_are_destroyed_after_their_modules_print_nothing() -> None:
    program = """
import sys
from autockpt import cli

class Lock:
    def __del__(self):
        raise AttributeError("the module of this object is gone")

lock, sys.kept = Lock(), sys.modules[__name__]
sys.argv = ["autockpt", "--version"]
sys.exit(cli.main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("autockpt ")
    assert ended.stderr == ""
