"""The text of an analysis for a terminal, as golden text."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from report_sample import sample_report
from rich.console import Console

from autockpt.render.text import analysis_text, render

EMPTY = {"frontier": [], "baselines": [], "graphs": [], "breaks": [], "what_if": [], "estimated": {}}


def nothing() -> dict[str, Any]:
    """A report in which all parts that may be empty are."""
    report = sample_report() | EMPTY | {"max_batch": None, "optimizer": None, "compiled_bytes": None, "settings": {}}
    report["device"]["approximations"] = []
    return report


def too_much() -> dict[str, Any]:
    """Names longer than any column, text that looks like markup, more of everything than is shown."""
    report = sample_report()
    graph = report["graphs"][0]
    long = "encoder.layers.7.feed_forward.experts.31.projection_of_the_gate" * 2
    for number, tensor in enumerate(graph["tensors"]):
        tensor |= {"module": f"{long}{number}", "code": "x[bold]", "reason": "[red]because[/] " + "so it is " * 30}
    graph["at_peak"]["by_module"] = {f"{long}.{n}": 2**30 - n for n in range(40)}
    report["frontier"] = [{**report["frontier"][n % 8], "method": long, "chosen": n == 33} for n in range(60)]
    report["what_if"][0]["change"] = long
    report["breaks"] = [{"reason": "[link=x]a reason[/link] " * 20, "count": 3}]
    launches = graph["timeline"]["launches"]
    graph["timeline"]["launches"] = [one for one in launches for _ in range(50)]
    return report


def test_at_100_columns(golden: Callable[[str], None]) -> None:
    golden(render(sample_report(), 100))


def test_at_80_columns(golden: Callable[[str], None]) -> None:
    golden(render(sample_report(), 80))


def test_a_step_that_does_not_fit_with_all_other_parts_empty(golden: Callable[[str], None]) -> None:
    verdict = "It does not fit: the minimum peak is 2.28 GiB, the budget 1.00 GiB."
    golden(render(nothing() | {"fits": False, "outcome": "over_budget", "verdict": verdict}, 80))


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("report", [sample_report(), nothing(), too_much()])
def test_no_line_is_wider_than_the_terminal(report: dict[str, Any], width: int) -> None:
    assert max(map(len, render(report, width).splitlines())) <= width


@pytest.mark.parametrize("width", [80, 120])
def test_numbers_are_never_cut(width: int) -> None:
    report = too_much()
    lines = render(report, width).splitlines()
    for row in [*report["baselines"], *report["what_if"]]:
        assert any(f"{row['peak_bytes'] / 2**30:.2f} GiB" in line for line in lines), row
    assert len([line for line in lines if line.startswith("→")]) == 1


def test_a_long_frontier_is_thinned_and_says_so() -> None:
    assert "(12 of 60 plans)" in render(too_much(), 80)
    assert "plans)" not in render(sample_report(), 80)


def test_strings_of_a_users_code_are_not_interpreted_as_markup() -> None:
    text = render(too_much(), 120)
    assert "[red]because[/]" in text
    assert "3 × [link=x]a reason[/link]" in text


@pytest.mark.parametrize(("fits", "colour"), [(True, "32m"), (False, "31m")])
def test_the_verdict_has_a_colour_in_a_terminal_and_needs_none(fits: bool, colour: str) -> None:
    report = sample_report() | {"fits": fits, "verdict": "words that say it"}
    file = io.StringIO()
    Console(file=file, width=100, force_terminal=True, color_system="standard").print(analysis_text(report))
    (line,) = [line for line in file.getvalue().splitlines() if "words that say it" in line]
    assert colour in line
    assert "\x1b" not in render(report, 100)


def test_a_search_for_the_largest_batch_that_stopped_early_says_why() -> None:
    stopped = "memory does not grow with the batch; stopped at 4096"
    report = sample_report()
    report["max_batch"] = {"batch": 4096, "peak_bytes": 2**30, "next_bytes": None, "stopped": stopped}

    assert f"A batch of 4096 fits, with a peak of 1.00 GiB; {stopped}." in " ".join(render(report, 100).split())


def test_of_a_graph_break_the_text_has_the_reason_and_the_hint() -> None:
    reason = "Call to print()\n  Explanation: a builtin.\n  Hint: remove it.\n\n  Developer debug context"
    text = render(sample_report() | {"breaks": [{"reason": reason, "count": 2}]}, 100)

    assert "  - 2 × Call to print()\n    Explanation: a builtin.\n    Hint: remove it.\n\nApproximations" in text


def test_several_graphs_are_one_timeline() -> None:
    report, other = sample_report(), sample_report()["graphs"][0]
    report["graphs"].append(other | {"name": "graph 1"})
    text = render(report, 100)
    assert "in the backward of graph 1, launch 41 of 80" in text
    assert "4 ×" in text


def test_a_rank_of_a_job_has_its_share_and_the_parts_of_its_step() -> None:
    seconds = {"step": 1.0, "compiled": 0.7, "operators": 0.1, "inside": 0.1, "outside": 0.6, "exposed": 0.2}
    rank = {"rank": 3, "world_size": 64, "parameters": 1_102_545_920, "seconds": seconds, "stages": [1]}
    shown = render(sample_report() | {"rank": rank | {"pipeline": list(range(3, 64, 8))}}, 200)

    assert "3 of 64, stage 1 of a pipeline of ranks 3, 11, 19, 27, 35, 43, 51, 59, with 1,102,545,920" in shown
    assert "700 ms kernels, 100 ms other operators, 100 ms collectives in graphs" in shown
    assert "200 ms of the step without computation" in shown
