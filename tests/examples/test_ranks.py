"""Examples of jobs that are not here: published figures are met, and a model of 70 billion parameters is analyzed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import autockpt
from autockpt.measure import load_factory

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("sequence_parallel", [False, True])
def test_table_4_of_korthikanti_et_al(sequence_parallel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "korthikanti", raising=False)
    import korthikanti

    rows = {row.policy: row for row in korthikanti.rows(sequence_parallel)}
    without = rows["no recomputation"]
    for row in rows.values():
        if row.published_seconds:
            published = row.published_seconds / without.published_seconds - 1
            assert row.seconds / without.seconds - 1 == pytest.approx(published, abs=0.1), row.policy
            assert row.saved_bytes == pytest.approx(row.published_bytes, rel=0.1), row.policy
            assert row.seconds == pytest.approx(row.published_seconds, rel=0.15), row.policy


def test_llama_3_70b_on_64_gpus() -> None:
    """Two of its 80 blocks, of which each costs the analysis a few milliseconds."""
    factory = load_factory(f"{EXAMPLES / 'llama3_70b.py'}:llama3_70b")
    found = autockpt.analyze(factory, layers=2, world_size=64, rank=9, device="h100", optimizer="adamw")
    assert found.fits
    assert found.report["rank"]["collectives"]["inside"] >= 2 * 8
    # Of each rank's eighth of a matrix, as tensor parallel cuts it, the eight nodes have an eighth each.
    assert found.report["rank"]["parameters"] == pytest.approx(found.report["parameters"] / 64, rel=0.01)
    assert found.report["memory"]["optimizer"] == pytest.approx(8 * found.report["parameters"] / 64, rel=0.01)
