"""Figures that ranks write down in a store: threads play the ranks."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributed import HashStore, Store

from autockpt.ranks.board import Board, Least

LONG, SHORT = 20.0, 0.2


def boards(count: int, store: Store | None = None) -> list[Board]:
    store = HashStore() if store is None else store
    return [Board(store, rank, tuple(range(count))) for rank in range(count)]


def together(*plannings: tuple[Board, str, tuple[int, ...], float]) -> list[Least]:
    with ThreadPoolExecutor(len(plannings)) as pool:
        return [one.result() for one in [pool.submit(board.least, *asked) for board, *asked in plannings]]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(-(2**62), 2**62), st.integers(0, 9)), min_size=1, max_size=4))
def test_all_ranks_get_each_figures_least(told: list[tuple[int, int]]) -> None:
    found = together(*((board, "graph", mine, LONG) for board, mine in zip(boards(len(told)), told, strict=True)))
    least = tuple(min(column) for column in zip(*told, strict=True))
    assert found == [Least(least, (), ())] * len(told)


def test_a_subject_that_comes_again_is_agreed_anew() -> None:
    here, there = boards(2)
    assert [found.figures for found in together((here, "g", (5,), LONG), (there, "g", (3,), LONG))] == [(3,), (3,)]
    assert [found.figures for found in together((here, "g", (7,), LONG), (there, "g", (9,), LONG))] == [(7,), (7,)]


def test_a_rank_that_plans_alone_waits_so_long_and_no_longer() -> None:
    here, _ = boards(2)
    started = time.monotonic()
    assert here.least("g", (5,), SHORT) == Least((5,), missing=(1,), elsewhere=())
    assert SHORT <= time.monotonic() - started < LONG


def test_a_rank_that_comes_late_finds_what_was_decided_without_it() -> None:
    here, late = boards(2)
    here.least("g", (5,), SHORT)
    assert late.least("g", (3,), LONG).figures == (5,)


def test_ranks_with_other_graphs_do_not_wait_for_each_other() -> None:
    here, there = boards(2)
    started = time.monotonic()
    found = together((here, "mine", (5,), 60.0), (there, "theirs", (3,), 60.0))
    assert found == [Least((5,), (1,), (1,)), Least((3,), (0,), (0,))]
    assert time.monotonic() - started < 30.0


def test_ranks_that_were_at_other_graphs_wait_for_each_other_again() -> None:
    here, there = boards(2)
    together((here, "mine", (5,), LONG), (there, "theirs", (3,), LONG))
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(here.least, "ours", (5,), LONG)
        time.sleep(1.5)
        assert not found.done()
        assert there.least("ours", (3,), LONG).figures == (3,) == found.result().figures


def test_a_rank_that_has_yet_to_leave_the_planning_before_is_waited_for() -> None:
    """It said its figures, so the other one has gone on to the next graph; it is late, not elsewhere."""
    here, there = boards(2)
    together((here, "first", (1,), LONG), (there, "first", (1,), LONG))
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(here.least, "second", (5,), LONG)
        time.sleep(1.5)
        assert not found.done()
        assert there.least("second", (3,), LONG).figures == (3,)
        assert found.result().figures == (3,)


def test_the_first_rank_decides_and_nobody_waits() -> None:
    here, there = boards(2)
    assert there.first("plan", "theirs") == "theirs"
    assert here.first("plan", "mine") == "theirs"
    assert here.first("another", "mine") == "mine"


def test_groups_do_not_read_each_others_figures() -> None:
    store = HashStore()
    here, there = Board(store, 0, (0,)), Board(store, 0, (0, 1))
    here.least("g", (1,), LONG)
    assert there.least("g", (5,), SHORT).figures == (5,)


@pytest.mark.parametrize("count", [2, 4])
def test_a_hundred_plannings_in_a_row_never_disagree(count: int) -> None:
    def plan(board: Board) -> list[tuple[int, ...]]:
        return [board.least(f"g{n % 7}", ((board.rank * 37 + n) % 11,), LONG).figures for n in range(100)]

    with ThreadPoolExecutor(count) as pool:
        first, *others = pool.map(plan, boards(count))
    assert all(other == first for other in others)
