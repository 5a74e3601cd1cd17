"""Tests of the step count everything that is live, and find no plan of another test on disk."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def whole_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AUTOCKPT_SCOPE")
    monkeypatch.setattr("autockpt.backend.steps_folder", lambda: tmp_path / "steps")
