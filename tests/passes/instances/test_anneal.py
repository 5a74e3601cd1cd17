"""Schedules under random moves, and the plans that annealing finds."""

from __future__ import annotations

from random import Random

import pytest
from random_instances import random_instance

from autockpt.passes.instances.anneal import Moves, anneal
from autockpt.passes.instances.instance import Instance, extra_seconds, peak_bytes
from autockpt.passes.instances.schedule import Schedule


@pytest.mark.parametrize("seed", range(10))
def test_live_bytes_follow_every_move_and_its_undoing(seed: int) -> None:
    instance = random_instance(seed)
    schedule = Schedule(instance, instance.save_everything)
    moves = Moves(schedule, Random(seed))
    for _ in range(150):
        before = schedule.recomputed(), schedule.live.copy()
        moves.propose()
        recomputed = schedule.recomputed()
        assert int(schedule.live.max()) == peak_bytes(instance, recomputed)
        assert schedule.extra_seconds == pytest.approx(extra_seconds(instance, recomputed))
        if seed % 2:
            moves.undo()
            assert schedule.recomputed() == before[0]
            assert (schedule.live == before[1]).all()


def test_moves_never_recompute_must_save_values_or_outputs() -> None:
    instance = Instance.of(
        [1] * 6, [4] * 6, [(), (0,), (1,), (2,), (1, 3), (0, 4)], boundary=3, must_save=[0], outputs=[1]
    )
    schedule = Schedule(instance, instance.save_everything)
    moves = Moves(schedule, Random(0))
    for _ in range(100):
        moves.propose()
        assert {value for value, _ in schedule.recomputations} <= {2}


def test_annealing_with_the_same_seed_gives_the_same_plans() -> None:
    instance = random_instance(3)
    budget = peak_bytes(instance, instance.save_everything) * 3 // 4

    first, second = (anneal(instance, instance.save_everything, budget, 500, seed=1) for _ in range(2))

    assert first == second


def test_the_smallest_plan_is_tracked_even_where_the_starting_plan_fits() -> None:
    # Recomputing f0 costs nothing, so moves that add it are accepted. Without f0 the peak is 10 bytes, not 18.
    reads = [(), (0,), (1,), (2,), (3,), (0, 4)]
    instance = Instance.of([0, 1, 1, 1, 1, 1], [8, 2, 2, 8, 1, 1], reads, boundary=3)
    found = anneal(instance, instance.save_everything, budget_bytes=18, iterations=50, seed=0)

    assert found.fastest == instance.save_everything
    assert peak_bytes(instance, found.smallest) == 10
