"""Tests of the step count everything that is live."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def whole_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AUTOCKPT_SCOPE")
