"""The search for a plan of an instance."""

from __future__ import annotations

from math import inf

import pytest
from random_instances import random_instance

import autockpt.passes.instances.search as instance_search
from autockpt.passes.instances.astar import solve_exact
from autockpt.passes.instances.instance import Instance, extra_seconds, peak_bytes
from autockpt.passes.instances.search import candidates, solve_instance


def test_candidates_are_the_stages_of_reads_of_near_readers() -> None:
    instance = Instance.of([1] * 6, [1] * 6, [(), (0,), (1,), (2,), (1, 3), (0, 4)], boundary=3, must_save=[2])

    assert candidates(instance, 0) == ((2,), (1,), ())
    assert candidates(instance, 1) == ((1, 2), (0, 1), ())
    assert candidates(instance, 0, [((1,), (), ())]) == ((2,), (0, 1), ())


@pytest.mark.parametrize("seed", range(6))
def test_the_search_for_large_instances_is_exact_on_small_ones(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = random_instance(seed, forward=6, backward=6)
    monkeypatch.setattr(instance_search, "_MAX_EXACT", 0)
    for share in (0.85, 0.65):
        budget = int(peak_bytes(instance, instance.save_everything) * share)
        best = solve_exact(instance, budget)
        assert solve_instance(instance, budget).extra_seconds == (
            inf if best is None else extra_seconds(instance, best)
        )


def test_what_fits_is_not_changed_and_what_cannot_fit_is_proven() -> None:
    instance = random_instance(1)
    peak = peak_bytes(instance, instance.save_everything)

    assert solve_instance(instance, peak).recomputed == instance.save_everything
    infeasible = solve_instance(instance, 0)
    assert infeasible.recomputed is None
    assert 0 < infeasible.peak_bytes <= peak
    assert "No plan fits" in infeasible.outcome


def test_instances_without_a_backward_or_without_recomputable_values_are_planned() -> None:
    bare = Instance.of([1, 1], [4, 4], [(), (0,)], boundary=2)
    stuck = Instance.of([1, 1, 1], [4, 4, 4], [(), (0,), (0, 1)], boundary=2, must_save=[0, 1])

    assert solve_instance(bare, 8).recomputed == ()
    assert solve_instance(bare, 7).recomputed is None
    assert solve_instance(stuck, 11).recomputed is None
