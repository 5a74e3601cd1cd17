"""The interval program of an instance: its intervals, its plans, and its bound."""

from __future__ import annotations

from itertools import product
from math import inf
from random import Random

import numpy as np
import pytest

from autockpt.passes.instances.instance import Instance, extra_seconds, peak_bytes
from autockpt.passes.instances.intervals import interval_plan, just_in_time, pose_intervals, unavoidable_bytes


def chain(length: int) -> Instance:
    """f0 -> f1 -> ..; backward operation i reads its predecessor and forward operation length-1-i."""
    reads = [[v - 1] if v else [] for v in range(length)]
    reads += [[length - 1 - back] + ([length + back - 1] if back else []) for back in range(length)]
    return Instance.of([1.0] * (2 * length), [8] * length + [1] * length, reads, boundary=length)


def test_an_interval_runs_from_the_last_forward_to_the_first_backward_read() -> None:
    intervals = pose_intervals(chain(3))

    assert intervals.first_moment.tolist() == [2, 3, 3]
    assert intervals.last_moment.tolist() == [4, 3, 2]
    assert intervals.free_to_save.tolist() == [False, False, True]
    assert unavoidable_bytes(chain(3)).tolist() == [8, 16, 16, 9, 10, 10]


def test_values_are_recomputed_just_before_their_first_need() -> None:
    instance = chain(4)

    assert just_in_time(instance, np.array([True, True, False, False])) == ((), (), (0, 1), ())
    assert just_in_time(instance, np.array([True, False, False, False])) == ((), (), (), (0,))


def test_the_plan_fits_when_replayed_and_its_bound_holds() -> None:
    instance = chain(8)
    whole = peak_bytes(instance, instance.save_everything)
    for budget in range(whole * 2 // 3, whole + 1, 4):
        found = interval_plan(instance, budget)
        assert found.recomputed is not None
        assert peak_bytes(instance, found.recomputed) <= budget
        assert extra_seconds(instance, found.recomputed) >= found.bound_seconds - 1e-6


@pytest.mark.parametrize("seed", range(30))
def test_no_plan_of_the_class_is_faster_than_the_bound(seed: int) -> None:
    """Only some values are read by the backward, so that others are saved for recomputations alone."""
    random = Random(seed)
    reads = [sorted({random.randrange(v) for _ in range(random.randrange(1, 3))}) if v else [] for v in range(6)]
    reads += [sorted({random.randrange(6), *([5 + back] if back else [])}) for back in range(5)]
    instance = Instance.of(
        [random.randrange(6) for _ in reads], [random.randrange(9) for _ in reads], reads, boundary=6
    )
    plans = [just_in_time(instance, np.array(chosen)) for chosen in product((False, True), repeat=6)]
    for budget in sorted({peak_bytes(instance, recomputed) for recomputed in plans}):
        fitting = [
            extra_seconds(instance, recomputed) for recomputed in plans if peak_bytes(instance, recomputed) <= budget
        ]
        assert interval_plan(instance, budget).bound_seconds <= min(fitting) + 1e-6


def test_a_budget_below_a_single_operation_has_no_plan() -> None:
    found = interval_plan(chain(3), 9)

    assert found.recomputed is None
    assert found.bound_seconds == inf
