"""`autockpt doctor`: what it finds, what it says is missing, and that it does not import the frameworks it names."""

from __future__ import annotations

import json
import sys

import pytest
import torch

from autockpt.cli import main
from autockpt.machine.environment import FRAMEWORKS, examine, frameworks


def found(subject: str) -> str:
    return next(finding.found for finding in examine() if finding.subject == subject)


def test_everything_that_the_backend_needs_is_named_and_nothing_is_missing_here(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert torch.__version__ in shown
    assert all(subject in shown for subject in ("C++ compiler", "Triton", "device cpu", "profile", "cache folder"))


def test_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    findings = {one["subject"]: one for one in json.loads(capsys.readouterr().out)}
    assert findings["torch"]["problem"] == ""
    assert not any(one["fatal"] for one in findings.values())


def test_without_a_compiler_the_exit_code_and_the_advice_say_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert main(["doctor"]) == 1
    assert "install g++, or name a compiler in CXX" in " ".join(capsys.readouterr().out.split())


def test_another_release_of_torch_is_a_problem_that_names_the_supported_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "2.9.1+cpu")
    (finding,) = [finding for finding in examine() if finding.subject == "torch"]
    assert "autockpt is written for torch <2.16,>=2.13" in finding.problem
    assert not finding.fatal


def test_a_cache_folder_that_cannot_be_written_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOCKPT_CACHE_DIR", "/proc/no-such-folder")
    monkeypatch.setattr("os.access", lambda *args: False)
    (finding,) = [finding for finding in examine() if finding.subject == "cache folder"]
    assert "set AUTOCKPT_CACHE_DIR" in finding.problem


def test_options_from_the_environment_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOCKPT_MEMORY_BUDGET", "12GiB")
    assert found("AUTOCKPT_MEMORY_BUDGET") == "12GiB"


def test_each_installed_framework_says_how_it_reaches_the_backend_and_is_not_imported() -> None:
    before = set(sys.modules)
    findings = list(frameworks(lambda name: "1.0" if name in ("trl", "timm") else None))
    assert [finding.subject for finding in findings] == ["trl", "timm"]
    assert FRAMEWORKS["timm"] in findings[1].found
    assert not {"trl", "timm"} & (set(sys.modules) - before)
