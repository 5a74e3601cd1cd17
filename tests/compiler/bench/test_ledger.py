"""`autockpt bench ledger`: what is timed, and what is printed."""

from __future__ import annotations

import json

import pytest

from autockpt.bench.ledger import LedgerTime
from autockpt.cli import main


def test_the_ledger_is_timed_for_one_graph_and_for_many_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "ledger", "--repeats", "2", "--json", "-"]) == 0
    rows = [LedgerTime(**row) for row in json.loads(capsys.readouterr().out)]
    assert [row.calls for row in rows] == [1, 16]
    assert all(row.without > 0 for row in rows)
