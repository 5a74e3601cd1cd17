"""Ranks that compile: real processes on gloo, with `lower="eager"`."""

from __future__ import annotations

from pathlib import Path

from rank_jobs import run_job
from rank_work import dies, scenarios, uneven_memory

from autockpt.ranks import agreement
from autockpt.ranks.peers import peer_groups


def test_auto_with_uneven_memory_gives_equal_plans_in_the_smaller_budget(tmp_path: Path) -> None:
    first, *others = run_job(tmp_path, 4, uneven_memory)
    assert first.split()[0].isdigit()
    assert others == [first] * 3


def test_ranks_with_other_graphs_alone_and_together(tmp_path: Path) -> None:
    here, there = run_job(tmp_path, 2, scenarios)
    assert here["alone"] != there["alone"]
    assert here["other graph"] != there["other graph"]
    assert max(here["other graph seconds"], there["other graph seconds"]) < 30
    (warning,) = there["warnings"]
    assert warning.startswith("autockpt: ranks 0 did not plan the graph that this rank plans within 2 s")
    assert "recompiled" in there
    assert here["after"] == there["after"]


def test_a_rank_that_dies_leaves_the_others_with_an_error_and_not_waiting(tmp_path: Path) -> None:
    here, there = run_job(tmp_path, 2, dies)
    assert there is None
    assert here.startswith("True ")


def test_a_process_without_a_job_agrees_with_nobody() -> None:
    assert peer_groups() == []
    assert agreement.agreement_of_ranks("auto") == agreement.agreement_of_ranks(False) == agreement.ALONE
