"""A phase is planned again before the same run of it on all ranks: threads are not needed, nobody waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from torch.distributed import HashStore

from autockpt.ranks.agreement import ALONE, Agreement
from autockpt.ranks.board import Board
from autockpt.step.ranks import requests
from autockpt.step.ranks.requests import ReplanRequests, is_look, next_look


def phase(seen: int, key: int = 1) -> Any:
    return SimpleNamespace(signature=(key, -1), graphs=[], seen=seen)


@pytest.fixture
def ranks(monkeypatch: pytest.MonkeyPatch) -> list[ReplanRequests]:
    """Of two ranks of one job; a phase has the same subject on both."""
    store, here = HashStore(), []
    agreements = [Agreement((Board(store, rank, (0, 1)),)) for rank in range(2)]
    monkeypatch.setattr(requests, "agreement_on", lambda *graphs: agreements[len(here)])
    monkeypatch.setattr(requests, "subject_of", lambda observed: str(observed[0].signature))
    for _ in agreements:
        one = ReplanRequests()
        one.due([phase(0), phase(0, key=2)])
        here.append(one)
    return here


def test_both_ranks_plan_before_the_run_after_the_next() -> None:
    assert [next_look(run) for run in (3, 31, 32, 33, 48)] == [3, 31, 32, 48, 48]
    assert all(is_look(next_look(run)) for run in range(200))


def test_a_request_of_one_rank_is_due_on_both_before_the_same_run(ranks: list[ReplanRequests]) -> None:
    here, there = ranks
    assert here.ask(phase(seen=3))
    # The other rank may have begun its fourth run by then.
    assert [one.due([phase(seen=3)]) for one in ranks] == [set(), set()]
    assert [one.due([phase(seen=4)]) for one in ranks] == [{(1, -1)}, {(1, -1)}]
    assert [one.due([phase(seen=5)]) for one in ranks] == [set(), set()]
    assert there.due([phase(seen=4, key=2)]) == set()


def test_two_requests_for_one_reason_are_one_and_a_later_one_is_another(ranks: list[ReplanRequests]) -> None:
    here, there = ranks
    here.ask(phase(seen=3))
    there.ask(phase(seen=3))
    assert [one.due([phase(seen=4)]) for one in ranks] == [{(1, -1)}, {(1, -1)}]
    there.ask(phase(seen=6))
    assert [one.due([phase(seen=7)]) for one in ranks] == [{(1, -1)}, {(1, -1)}]


def test_a_process_without_other_ranks_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "agreement_on", lambda *graphs: ALONE)
    alone = ReplanRequests()
    assert not alone.ask(phase(seen=3))
    assert alone.due([phase(seen=4)]) == set()
