"""All graphs of a report on one clock."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from report_sample import sample_report

from autockpt.render.step import held_after_step, peak_launch, step_launches


def two_graphs() -> dict[str, Any]:
    """The sample's step twice, as after a graph break."""
    report, other = sample_report(), sample_report()["graphs"][0]
    report["graphs"].append(other | {"name": "graph 1"})
    return report


def test_forwards_run_in_order_then_backwards_last_graph_first() -> None:
    passes = list(dict.fromkeys((launch.facts["pass"], launch.graph) for launch in step_launches(two_graphs())))
    assert passes == [("forward", 0), ("forward", 1), ("backward", 1), ("backward", 0)]


def test_one_clock_runs_without_gaps() -> None:
    report = two_graphs()
    step = step_launches(report)
    assert all(after.start_seconds == pytest.approx(before.end_seconds) for before, after in pairwise(step))
    assert step[-1].end_seconds == pytest.approx(sum(graph["step_seconds"] for graph in report["graphs"]))


def test_of_one_graph_the_peak_launch_has_the_peak_of_the_report() -> None:
    report = sample_report()
    peak = peak_launch(step_launches(report))
    assert peak is not None
    assert peak.launch == report["graphs"][0]["timeline"]["peak"]
    assert peak.live_bytes == report["peak_bytes"]


def test_a_graph_between_its_passes_holds_what_it_saved() -> None:
    """Against counting every block from its first launch to its last on the common clock."""
    report = two_graphs()
    step = step_launches(report)
    at = {(one.graph, one.launch): number for number, one in enumerate(step)}
    for number, launch in enumerate(step):
        live = report["optimizer"]["state_bytes"]
        for index, graph in enumerate(report["graphs"]):
            last = len(graph["timeline"]["launches"]) - 1
            for block in graph["blocks"]:
                first = -1 if block["first_launch"] < 0 else at[index, block["first_launch"]]
                endless = block["kind"] in ("parameters", "inputs", "gradients") and block["last_launch"] == last
                until = len(step) if endless else at[index, block["last_launch"]]
                live += block["bytes"] if first <= number <= until else 0
        assert launch.live_bytes == live, launch


def test_parameters_inputs_gradients_and_optimizer_state_outlive_the_step() -> None:
    report = sample_report()
    left = {kind for kind, size in held_after_step(report).items() if size}
    assert left == {"parameters", "inputs", "gradients", "optimizer state"}


def test_a_report_without_graphs_has_no_launches() -> None:
    report = sample_report() | {"graphs": []}
    assert step_launches(report) == []
    assert peak_launch([]) is None


_TIMELINE = ("timeline", "blocks", "at_peak", "tensors", "gap")


def without_timeline(graph: dict[str, Any], **facts: int) -> dict[str, Any]:
    """As reports of other settings (what-if) have it: sizes and seconds only."""
    return {key: value for key, value in graph.items() if key not in _TIMELINE} | facts


def test_a_graph_without_a_timeline_counts_with_its_peak_and_what_it_holds() -> None:
    report = sample_report() | {"optimizer": None}
    (graph,) = report["graphs"]
    facts = {"peak_bytes": 1000, "saved_bytes": 300, "graph_input_bytes": 100, "gradient_bytes": 50}
    report["graphs"] = [without_timeline(graph, **facts), without_timeline(graph, **facts, step_seconds=4)]
    step = step_launches(report)

    # The other graph holds its inputs; from its forward to its backward also what it saved; then its gradients.
    assert [launch.live_bytes for launch in step] == [1000 + 100, 1000 + 400, 1000 + 400, 1000 + 150]
    assert [launch.graph for launch in step] == [0, 1, 1, 0]
    assert [launch.start_seconds for launch in step[1:3]] == pytest.approx(
        [graph["step_seconds"] / 2 + n for n in (0, 2)]
    )
    assert held_after_step(report) == {"inputs": 200, "gradients": 100, "optimizer state": 0}


def test_of_one_graph_without_a_timeline_the_peak_is_its_own() -> None:
    report = sample_report()
    report["graphs"] = [without_timeline(report["graphs"][0])]
    peak = peak_launch(step_launches(report))

    assert peak is not None
    assert peak.live_bytes == report["peak_bytes"]
