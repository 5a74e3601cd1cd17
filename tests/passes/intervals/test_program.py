"""The interval program against trying every choice, and the plans made from it."""

from __future__ import annotations

from itertools import product
from math import inf
from random import Random

import numpy as np
import pytest

from autockpt.passes.graph.arrays import Booleans, Floats
from autockpt.passes.intervals.program import lp_bound, solve_intervals
from autockpt.passes.intervals.values import Intervals


def intervals_of(
    seconds: list[float], nbytes: list[float], reads: list[tuple[int, int]], needed: list[int], count: int = 1
) -> Intervals:
    """Every interval covers moments 0 .. count-1."""
    every = np.arange(len(seconds))
    return Intervals(
        recompute_seconds=np.array(seconds),
        nbytes=np.array(nbytes),
        first_moment=np.zeros(len(seconds), dtype=np.int64),
        last_moment=np.full(len(seconds), count - 1),
        reads=np.array(reads, dtype=np.int64).reshape(-1, 2),
        needed_by_backward=np.isin(every, needed),
    )


def random_intervals(seed: int, size: int = 6) -> tuple[Intervals, Floats]:
    random = Random(seed)
    pairs = [(u, v) for v in range(size) for u in range(v) if random.random() < 0.35]
    seconds = [random.choice([0.0, 1.0, 2.0, 5.0, inf]) for _ in range(size)]
    nbytes = [random.choice([0.0, 1.0, 3.0, 4.0, inf]) for _ in range(size)]
    drawn = intervals_of(seconds, nbytes, pairs, random.sample(range(size), 4))
    first_moment = np.array([random.randrange(3) for _ in range(size)])
    last_moment = np.array([random.randrange(2, 6) for _ in range(size)])
    intervals = Intervals(
        drawn.recompute_seconds, drawn.nbytes, first_moment, last_moment, drawn.reads, drawn.needed_by_backward
    )
    return intervals, np.array([float(random.randrange(3, 11)) for _ in range(6)])


def is_solution(intervals: Intervals, slack: Floats, saved: Booleans, recomputed: Booleans) -> bool:
    there = saved | recomputed
    held = np.where(saved, intervals.nbytes, 0.0)
    moments = np.arange(len(slack))[:, None]
    inside = (intervals.first_moment <= moments) & (moments <= intervals.last_moment)
    return bool(
        there[intervals.needed_by_backward].all()
        and all(there[u] for u, v in intervals.reads.tolist() if recomputed[v])
        and np.isfinite(held).all()
        and np.isfinite(intervals.recompute_seconds[recomputed]).all()
        and (np.where(inside, held, 0.0).sum(axis=1) <= slack).all()
    )


def cheapest(intervals: Intervals, slack: Floats) -> float:
    """By trying every choice: each value is saved, recomputed or neither."""
    least = inf
    for choice in product(range(3), repeat=intervals.count):
        saved, recomputed = np.array(choice) == 1, np.array(choice) == 2
        if is_solution(intervals, slack, saved, recomputed):
            least = min(least, float(intervals.recompute_seconds[recomputed].sum()))
    return least


@pytest.mark.parametrize("seed", range(25))
def test_the_solution_is_the_cheapest_of_all_choices(seed: int) -> None:
    intervals, slack = random_intervals(seed)
    least = cheapest(intervals, slack)
    solution = solve_intervals(intervals, slack, limit_seconds=10.0)

    assert (inf if solution is None else solution.seconds) == pytest.approx(least)
    if solution is not None:
        assert is_solution(intervals, slack, solution.saved, solution.recomputed)
        assert solution.lp_seconds <= solution.bound_seconds + 1e-6 <= solution.seconds + 2e-6
        assert lp_bound(intervals, slack) == pytest.approx(solution.lp_seconds)


def test_the_cheapest_per_byte_is_recomputed() -> None:
    intervals = intervals_of([3.0, 1.0], [4.0, 4.0], [], needed=[0, 1])
    solution = solve_intervals(intervals, np.array([4.0]), limit_seconds=1.0)

    assert solution is not None
    assert solution.saved.tolist() == [True, False]
    assert solution.proven
    assert solution.seconds == 1.0


def test_a_recomputed_value_needs_its_input() -> None:
    intervals = intervals_of([5.0, 1.0], [2.0, 4.0], [(0, 1)], needed=[1])
    solution = solve_intervals(intervals, np.array([3.0]), limit_seconds=1.0)

    assert solution is not None
    assert (solution.saved.tolist(), solution.recomputed.tolist()) == ([True, False], [False, True])


def test_what_can_neither_be_saved_nor_recomputed_leaves_no_solution() -> None:
    assert solve_intervals(intervals_of([inf], [4.0], [], needed=[0]), np.array([3.0]), limit_seconds=1.0) is None
    assert solve_intervals(intervals_of([1.0], [4.0], [], needed=[0]), np.array([-1.0]), limit_seconds=1.0) is None
    assert lp_bound(intervals_of([inf], [4.0], [], needed=[0]), np.array([3.0])) is None


def test_intervals_that_share_no_boundary_are_refused() -> None:
    none = np.zeros((0, 2), dtype=np.int64)
    separate = Intervals(np.ones(2), np.ones(2), np.array([0, 5]), np.array([2, 6]), none, np.ones(2, dtype=np.bool_))
    with pytest.raises(ValueError, match="share no boundary"):
        solve_intervals(separate, np.ones(7), limit_seconds=1.0)
