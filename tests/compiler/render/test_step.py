"""All graphs of a report on one clock."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from report_sample import sample_report

from autockpt.render.step import left_over, peak_launch, step_launches


def two_graphs() -> dict[str, Any]:
    """The sample's step twice, as after a graph break."""
    report, other = sample_report(), sample_report()["graphs"][0]
    report["graphs"].append(other | {"name": "graph 1"})
    return report


def test_forwards_run_in_order_then_backwards_last_graph_first() -> None:
    passes = list(dict.fromkeys((turn.facts["pass"], turn.graph) for turn in step_launches(two_graphs())))
    assert passes == [("forward", 0), ("forward", 1), ("backward", 1), ("backward", 0)]


def test_one_clock_runs_without_gaps() -> None:
    report = two_graphs()
    step = step_launches(report)
    assert all(after.start_seconds == pytest.approx(before.end_seconds) for before, after in pairwise(step))
    assert step[-1].end_seconds == pytest.approx(sum(graph["step_seconds"] for graph in report["graphs"]))


def test_of_one_graph_the_highest_turn_is_the_peak_of_the_report() -> None:
    report = sample_report()
    peak = peak_launch(step_launches(report))
    assert peak is not None
    assert peak.launch == report["graphs"][0]["timeline"]["peak"]
    assert peak.live_bytes == report["peak_bytes"]


def test_a_graph_that_rests_still_holds_what_it_kept() -> None:
    """Against counting every block between its birth and its death on the common clock."""
    report = two_graphs()
    step = step_launches(report)
    at = {(turn.graph, turn.launch): number for number, turn in enumerate(step)}
    for number, turn in enumerate(step):
        live = report["optimizer"]["state_bytes"]
        for index, graph in enumerate(report["graphs"]):
            last = len(graph["timeline"]["launches"]) - 1
            for block in graph["blocks"]:
                born = -1 if block["first_launch"] < 0 else at[index, block["first_launch"]]
                endless = block["kind"] in ("parameters", "inputs", "gradients") and block["last_launch"] == last
                dies = len(step) if endless else at[index, block["last_launch"]]
                live += block["bytes"] if born <= number <= dies else 0
        assert turn.live_bytes == live, turn


def test_parameters_inputs_gradients_and_optimizer_state_are_left() -> None:
    report = sample_report()
    left = {kind for kind, size in left_over(report).items() if size}
    assert left == {"parameters", "inputs", "gradients", "optimizer state"}


def test_a_report_without_launches_has_no_turns() -> None:
    report = sample_report() | {"graphs": []}
    assert step_launches(report) == []
    assert peak_launch([]) is None
