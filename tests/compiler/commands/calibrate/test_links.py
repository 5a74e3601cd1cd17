"""`autockpt calibrate --links`: two processes of this machine, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from autockpt.cli import main
from autockpt.cost_models import load_profile


def test_two_ranks_write_a_profile_with_the_link_between_them(tmp_path: Path) -> None:
    profile = tmp_path / "linked.json"
    job = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "autockpt"]
    command = [sys.executable, *job, "calibrate", "--links", "--device", "cpu", "--json", "--output", str(profile)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr[-2000:]
    (link,) = load_profile(str(profile)).links
    assert link.ranks == 2
    assert link.bytes_per_second > 0
    (timed,) = json.loads(finished.stdout)
    assert timed["link"]["bytes_per_second"] == link.bytes_per_second
    assert len(timed["gathers"]) == 8


def test_one_process_is_told_how_to_start_several(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--links", "--device", "cpu"]) == 2
    assert "torchrun --nproc-per-node 8 -m autockpt calibrate --links" in capsys.readouterr().err
