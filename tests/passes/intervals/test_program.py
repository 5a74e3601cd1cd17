"""The interval program against trying every choice, and the plans made from it."""

from __future__ import annotations

from itertools import product
from math import inf
from random import Random

import numpy as np
import pytest

from autockpt.passes.graph.arrays import Booleans, Floats
from autockpt.passes.intervals.program import lp_bound, solve
from autockpt.passes.intervals.values import Intervals


def gaps_of(
    seconds: list[float], nbytes: list[float], reads: list[tuple[int, int]], demanded: list[int], count: int = 1
) -> Intervals:
    """Every gap covers moments 0 .. count-1."""
    every = np.arange(len(seconds))
    return Intervals(
        seconds=np.array(seconds),
        nbytes=np.array(nbytes),
        opens=np.zeros(len(seconds), dtype=np.int64),
        closes=np.full(len(seconds), count - 1),
        reads=np.array(reads, dtype=np.int64).reshape(-1, 2),
        demanded=np.isin(every, demanded),
    )


def random_intervals(seed: int, size: int = 6) -> tuple[Intervals, Floats]:
    random = Random(seed)
    pairs = [(u, v) for v in range(size) for u in range(v) if random.random() < 0.35]
    seconds = [random.choice([0.0, 1.0, 2.0, 5.0, inf]) for _ in range(size)]
    nbytes = [random.choice([0.0, 1.0, 3.0, 4.0, inf]) for _ in range(size)]
    given = gaps_of(seconds, nbytes, pairs, random.sample(range(size), 4))
    opens = np.array([random.randrange(3) for _ in range(size)])
    closes = np.array([random.randrange(2, 6) for _ in range(size)])
    intervals = Intervals(given.seconds, given.nbytes, opens, closes, given.reads, given.demanded)
    return intervals, np.array([float(random.randrange(3, 11)) for _ in range(6)])


def is_choice(intervals: Intervals, room: Floats, saved: Booleans, again: Booleans) -> bool:
    there = saved | again
    held = np.where(saved, intervals.nbytes, 0.0)
    moments = np.arange(len(room))[:, None]
    inside = (intervals.opens <= moments) & (moments <= intervals.closes)
    return bool(
        there[intervals.demanded].all()
        and all(there[u] for u, v in intervals.reads.tolist() if again[v])
        and np.isfinite(held).all()
        and np.isfinite(intervals.seconds[again]).all()
        and (np.where(inside, held, 0.0).sum(axis=1) <= room).all()
    )


def cheapest(intervals: Intervals, room: Floats) -> float:
    """By trying every choice: each value is saved, computed again or neither."""
    least = inf
    for choice in product(range(3), repeat=intervals.count):
        saved, again = np.array(choice) == 1, np.array(choice) == 2
        if is_choice(intervals, room, saved, again):
            least = min(least, float(intervals.seconds[again].sum()))
    return least


@pytest.mark.parametrize("seed", range(25))
def test_the_answer_is_the_cheapest_of_all_choices(seed: int) -> None:
    intervals, room = random_intervals(seed)
    least = cheapest(intervals, room)
    answer = solve(intervals, room, limit_seconds=10.0)

    assert (inf if answer is None else answer.seconds) == pytest.approx(least)
    if answer is not None:
        assert is_choice(intervals, room, answer.saved, answer.again)
        assert answer.lp_seconds <= answer.bound_seconds + 1e-6 <= answer.seconds + 2e-6
        assert lp_bound(intervals, room) == pytest.approx(answer.lp_seconds)


def test_the_cheapest_per_byte_is_computed_again() -> None:
    intervals = gaps_of([3.0, 1.0], [4.0, 4.0], [], demanded=[0, 1])
    answer = solve(intervals, np.array([4.0]), limit_seconds=1.0)

    assert answer is not None
    assert answer.saved.tolist() == [True, False]
    assert answer.proven
    assert answer.seconds == 1.0


def test_a_recomputed_value_needs_its_input() -> None:
    intervals = gaps_of([5.0, 1.0], [2.0, 4.0], [(0, 1)], demanded=[1])
    answer = solve(intervals, np.array([3.0]), limit_seconds=1.0)

    assert answer is not None
    assert (answer.saved.tolist(), answer.again.tolist()) == ([True, False], [False, True])


def test_what_can_neither_be_kept_nor_recomputed_leaves_no_answer() -> None:
    assert solve(gaps_of([inf], [4.0], [], demanded=[0]), np.array([3.0]), limit_seconds=1.0) is None
    assert solve(gaps_of([1.0], [4.0], [], demanded=[0]), np.array([-1.0]), limit_seconds=1.0) is None
    assert lp_bound(gaps_of([inf], [4.0], [], demanded=[0]), np.array([3.0])) is None


def test_gaps_that_share_no_turn_are_refused() -> None:
    none = np.zeros((0, 2), dtype=np.int64)
    apart = Intervals(np.ones(2), np.ones(2), np.array([0, 5]), np.array([2, 6]), none, np.ones(2, dtype=np.bool_))
    with pytest.raises(ValueError, match="share a turn"):
        solve(apart, np.ones(7), limit_seconds=1.0)
