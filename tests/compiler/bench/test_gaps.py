"""Optimality gaps of plans and the minimum peak over depth, as they are summarised."""

from __future__ import annotations

import pytest

from autockpt.bench.planner.gaps import DepthRow, GapRow, exponent, gap_summary


def test_the_exponent_of_a_square_root_is_a_half() -> None:
    rows = [DepthRow(n, 0, 0, int(1e6 * n**0.5), "cut", 0.0, 0.0) for n in (4, 16, 64)]
    assert exponent(rows) == pytest.approx(0.5, abs=1e-3)


def test_the_summary_names_median_and_worst() -> None:
    rows = [GapRow("a", 0.5, 1, 1, "cut", 0.1, gap, 0.5, gap, 0.1) for gap in (0.01, 0.02, 0.09)]
    assert gap_summary(rows) == "gap to every plan, of step time: median 2.0%, worst 9.0%, 3 plans"
