"""Tests of the step count everything that is live, and find no plan of another test on disk."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import torch

from autockpt.machine import live_bytes


@pytest.fixture(autouse=True)
def whole_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AUTOCKPT_SCOPE")
    monkeypatch.setattr("autockpt.backend.steps_folder", lambda: tmp_path / "steps")


@pytest.fixture
def live_before() -> int:
    """What other tests of this process still hold; a budget in bytes is above it."""
    torch._dynamo.reset()
    gc.collect()
    return live_bytes(torch.device("cpu")).now()
