"""What CI makes of a test that does not run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SUITE = """
import pytest

def test_passes(): ...

@pytest.mark.browser
def test_in_a_browser(): ...

@pytest.mark.xfail
def test_known_defect():
    raise AssertionError
"""
SKIPS = SUITE + "\n\ndef test_needs_more():\n    pytest.skip('no such library')\n"
SKIPPED_WHOLE = "import pytest\npytest.skip('no such library', allow_module_level=True)\n"


def run(folder: Path, suite: str, ci: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_suite.py").write_text(suite)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = browser\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "suite_report", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "CI": ci, "PYTEST_ADDOPTS": ""}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("suite", [SKIPS, SKIPPED_WHOLE])
def test_an_unexpected_skip_fails_in_ci_and_is_a_skip_elsewhere(tmp_path: Path, suite: str) -> None:
    shown = run(tmp_path, suite, ci="true")
    assert shown.returncode != 0
    assert "was not run, which CI does not accept" in shown.stdout
    assert "no such library" in shown.stdout
    assert run(tmp_path, suite, ci="").returncode in (0, 5)  # 5: nothing was collected


def test_ci_counts_tests_by_kind(tmp_path: Path) -> None:
    shown = run(tmp_path, SUITE, ci="true")
    assert shown.returncode == 0
    assert "2 tests passed\n0 of them GPU proofs\n1 of them browser tests\n" in shown.stdout
