"""Ranks that compile: real processes on gloo, with `lower="eager"`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rank_jobs import run_job
from rank_work import dies, four_ranks, pieces, scenarios

from autockpt.ranks import agreement
from autockpt.ranks.peers import peer_groups


def gathers_again(ranks: list[dict[str, Any]]) -> None:
    first = ranks[0]
    for found in ranks:
        assert found["saved"]["gradients"]
        assert found["again"]["gradients"]
        # Those of the gradients, and four gathers; the first layer has no gradient of its input to scatter.
        assert (found["saved"]["collectives"], found["again"]["collectives"]) == (7, 11)
        assert found["again"]["plan"] == first["again"]["plan"]
        assert found["again"]["peak"] < 0.85 * found["saved"]["peak"]


def test_four_ranks_with_uneven_memory_plan_alike_and_gather_again_in_the_backward(tmp_path: Path) -> None:
    found = run_job(tmp_path, 4, four_ranks)
    assert found[0]["auto"].split()[0].isdigit()
    assert len({one["auto"] for one in found}) == 1
    gathers_again([one["sequence"] for one in found])


def test_ranks_with_other_graphs_alone_and_together(tmp_path: Path) -> None:
    here, there = run_job(tmp_path, 2, scenarios)
    assert here["alone"] != there["alone"]
    assert here["other graph"] != there["other graph"]
    assert max(here["other graph seconds"], there["other graph seconds"]) < 30
    (warning,) = there["warnings"]
    assert warning.startswith("autockpt: ranks 0 did not plan the graph that this rank plans within 2 s")
    assert "recompiled" in there
    assert here["after"] == there["after"]
    assert here["searched alone"] != there["searched alone"]
    assert here["searched"] == there["searched"]
    gathers_again([here["sequence"], there["sequence"]])
    # The first rank says which collectives run; another one does not run others.
    (refused,) = [one["other collectives"] for one in (here, there) if "other collectives" in one]
    assert refused.startswith("this rank would run other collectives than another rank of the same graph")


def test_pieces_that_dynamo_cuts_for_ddp_are_planned_together_and_alike(tmp_path: Path) -> None:
    here, there = run_job(tmp_path, 2, pieces)
    assert here["calls"] > 1
    assert here["gradients"]
    assert there["gradients"]
    assert here["plan"] == there["plan"]


def test_a_rank_that_dies_leaves_the_others_with_an_error_and_not_waiting(tmp_path: Path) -> None:
    here, there = run_job(tmp_path, 2, dies)
    assert there is None
    assert here.startswith("True ")


def test_a_process_without_a_job_agrees_with_nobody() -> None:
    assert peer_groups() == []
    assert agreement.agreement_of_ranks("auto") == agreement.agreement_of_ranks(False) == agreement.ALONE
