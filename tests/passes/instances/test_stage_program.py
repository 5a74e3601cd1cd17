"""The stage program against trying every set of recomputations."""

from __future__ import annotations

from itertools import product
from math import inf

import pytest
from random_instances import random_instance

from autockpt.passes.instances.instance import Instance, extra_seconds, peak_bytes
from autockpt.passes.instances.schedule import Grid
from autockpt.passes.instances.search import candidates
from autockpt.passes.instances.stage_program import solve_stages


def cheapest(instance: Instance, budget: int) -> float:
    """The least extra seconds, by trying every set of recomputations in the forward's order."""
    grid, free = Grid.of(instance), [v for v in range(instance.boundary) if not instance.runs_once[v]]
    least = inf
    for bits in product((False, True), repeat=len(free) * grid.stages):
        chosen = iter(bits)
        recomputed = tuple(tuple(v for v in free if next(chosen)) for _ in range(grid.stages))
        if peak_bytes(instance, recomputed) <= budget:
            least = min(least, extra_seconds(instance, recomputed))
    return least


@pytest.mark.parametrize("seed", range(8))
def test_with_every_stage_a_candidate_the_program_finds_the_cheapest_plan(seed: int) -> None:
    instance = random_instance(seed, forward=3, backward=3)
    everywhere = tuple(() if instance.runs_once[v] else (0, 1, 2) for v in range(3))
    for share in (0.9, 0.75, 0.6):
        budget = int(peak_bytes(instance, instance.save_everything) * share)
        answer = solve_stages(instance, budget, everywhere, limit_seconds=10.0)
        found = inf if answer.recomputed is None else extra_seconds(instance, answer.recomputed)
        assert found == pytest.approx(cheapest(instance, budget))


def test_where_nothing_is_cheaper_the_program_proves_it() -> None:
    instance = Instance.of([1, 1, 1, 1], [4, 4, 1, 1], [(), (0,), (1,), (0, 2)], boundary=2)
    answer = solve_stages(instance, 9, candidates(instance, 2), limit_seconds=1.0, below_seconds=0.0)

    assert answer.recomputed is None
    assert answer.proven
