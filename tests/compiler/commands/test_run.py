"""`autockpt run` runs a script as python would, with Inductor's graphs planned."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from autockpt.cli import main

SCRIPT = """
import sys
import torch
import helper

def loss(x):
    return (torch.nn.functional.gelu(x @ x) @ x).sum()

if __name__ == "__main__":
    torch.compile(loss)(torch.randn(32, 32, requires_grad=True)).backward()
    import autockpt
    print(sys.argv, helper.NAME, len(autockpt.decisions()), autockpt.decisions()[-1].outcome.name)
"""


def run(folder: Path, *arguments: str) -> str:
    (folder / "train.py").write_text(SCRIPT)
    (folder / "helper.py").write_text("NAME = 'beside'")
    command = [sys.executable, "-m", "autockpt", "run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout


def test_a_script_is_planned_and_gets_its_own_arguments(tmp_path: Path) -> None:
    shown = run(tmp_path, "--budget", "1.0", "--option", "lower=eager", "train.py", "--budget", "3", "-m")

    assert shown == "['train.py', '--budget', '3', '-m'] beside 1 FASTEST\n"


def test_a_module_is_found_from_the_current_folder(tmp_path: Path) -> None:
    shown = run(tmp_path, "--option", "lower=eager", "-m", "train", "x")

    assert "'x'] beside 1 " in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.py"], "no file absent.py"),
        (["--budget", "much", __file__], "much"),
        (["--option", "nonsense=1", __file__], "nonsense"),
        ([], "SCRIPT.py"),
    ],
)
def test_wrong_use_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
