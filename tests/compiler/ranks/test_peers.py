"""Which ranks are worth waiting for."""

from __future__ import annotations

from autockpt.ranks.peers import eligible, peer_groups


def test_without_a_pipeline_all_ranks_of_the_job_are_asked() -> None:
    assert eligible([(0, 1, 2, 3), (0, 1), (0, 2)], frozenset()) == [(0, 1, 2, 3)]


def test_other_stages_of_the_pipeline_are_not_waited_for() -> None:
    assert eligible([(0, 1)], frozenset({1})) == []


def test_beside_a_pipeline_the_groups_without_its_other_stages_are_asked() -> None:
    """Rank 0 of a mesh of two stages, two replicas and two shards: stages are 0 and 4."""
    groups = [tuple(range(8)), (0, 4), (0, 2), (0, 1), (0, 1)]
    assert eligible(groups, frozenset({4})) == [(0, 2), (0, 1)]


def test_a_process_that_is_alone_has_no_peers() -> None:
    assert peer_groups() == []
