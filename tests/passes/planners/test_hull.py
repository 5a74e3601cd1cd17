"""The bound that every price gives, against what priced cuts cost."""

from __future__ import annotations

from math import inf, isinf

import pytest
from graphs import chain, problem, random_problem

from autockpt.passes.planners.frontier import Frontier


@pytest.mark.parametrize("seed", range(20))
def test_a_bound_is_reached_by_each_cut_at_its_own_bytes_and_never_passed(seed: int) -> None:
    hull = Frontier(random_problem(seed)).hull
    for cut in hull.cuts:
        assert hull.bound_seconds(cut.saved_bytes) <= cut.seconds + 1e-9
    assert hull.bound_seconds(hull.cuts[0].saved_bytes) == pytest.approx(hull.cuts[0].seconds)


def test_less_room_never_bounds_lower() -> None:
    hull = Frontier(problem(chain(12))).hull
    bounds = [hull.bound_seconds(room) for room in range(0, 14_000, 500)]
    assert bounds == sorted(bounds, reverse=True)
    assert isinf(hull.bound_seconds(-1))


def test_a_large_graph_is_cut_at_few_prices_and_its_bound_is_no_higher(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Frontier(random_problem(5, 9)).hull
    monkeypatch.setattr("autockpt.passes.planners.cuts._LARGE", 0)
    monkeypatch.setattr("autockpt.passes.planners.cuts._PROBES", 3)
    few = Frontier(random_problem(5, 9)).hull
    assert len(few.cuts) <= 3
    for room in (0, 2_000, 8_000, inf):
        assert few.bound_seconds(room) <= whole.bound_seconds(room) + 1e-9
