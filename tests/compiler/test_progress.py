"""What a command shows while torch.compile plans and compiles below it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from autockpt.progress import report, stage


def test_reports_reach_the_innermost_stage_and_nobody_outside_of_one() -> None:
    shown: list[str] = []
    report("lost")
    with stage(shown.append, "one"):
        report("a")
        with stage(shown.append, "two"):
            report("b")
        report("c")
    report("lost")
    assert shown == ["one", "one: a", "two", "two: b", "one: c"]


def test_an_exception_ends_its_stage() -> None:
    shown: list[str] = []
    with pytest.raises(RuntimeError), stage(shown.append, "one"):
        raise RuntimeError
    report("lost")
    assert shown == ["one"]


@pytest.mark.inductor
def test_planning_dry_runs_and_compilation_are_shown(capfd: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 1))
    compiled = torch.compile(model, backend="autockpt", options={"memory_budget": 0.5})
    with stage(shown.append, "step"):
        compiled(torch.randn(64, 8)).sum().backward()
    parts = [text.removeprefix("step: ") for text in shown]
    order = ["planning", "dry run 1", "compiling the forward", "compiling the backward"]
    first = [next(at for at, text in enumerate(parts) if text.startswith(start)) for start in order]
    assert first == sorted(first)
    assert "planning: minimum peak, 1 of 6" in parts


MEASURES = """
from autockpt.cli import main
main(["verify", "--budget", "0.5", "nowhere.py:net"])
import torch
from autockpt.measure import measure_peak
block = torch.randn(1000)
def step():
    global block
    block = torch.randn(1000)
assert measure_peak(step, torch.device("cpu")) == 4000
"""


def test_the_profiler_writes_nothing_to_the_terminal(tmp_path: Path) -> None:
    """Of the CPU allocator's warning and Kineto's announcements, which are written by C++ code."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_LOG_LEVEL")}
    ran = subprocess.run(
        [sys.executable, "-c", MEASURES], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert ran.returncode == 0
    assert [line for line in ran.stderr.splitlines() if not line.startswith("autockpt: ")] == []
