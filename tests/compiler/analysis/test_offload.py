"""`analyze` with `offload`: what waits on the host and what that costs, or the sentence why nothing does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from declined_copies import DECLINED, layers, linked_profile
from torch import nn

import autockpt
from autockpt.cost_models import load_profile
from autockpt.cost_models.profiles import profile_json
from autockpt.errors import OptionError
from autockpt.render import render, save_frontier_plot
from autockpt.units import format_seconds

Linked = Callable[..., str]


@pytest.fixture
def linked(tmp_path: Path) -> Linked:
    """The path of a CPU profile with a link to a host."""

    return partial(linked_profile, tmp_path)


def planned(device: str, memory_budget: float | int = 0.3, **options: Any) -> dict[str, Any]:
    model, x = layers()
    options.setdefault("offload", True)
    return autockpt.analyze(model, x, memory_budget=memory_budget, device=device, **options).report


def test_a_report_says_what_is_moved_and_what_the_step_waits_for(linked: Linked) -> None:
    report = planned(linked(1e12))
    (graph,) = report["graphs"]
    found = graph["offload"]
    out = [copy for copy in found["copies"] if copy["direction"] == "out"]
    assert sum(copy["bytes"] for copy in out) == found["host_bytes"] > 0
    assert found["moved_bytes"] == 2 * found["host_bytes"]
    assert found["why_not"] == ""
    decisions = {tensor["name"]: tensor["decision"] for tensor in graph["tensors"]}
    assert {decisions[copy["name"]] for copy in out} == {"offloaded"}
    assert f"{len(out)} tensors" in render(report, 120)


def test_a_calibrated_profile_says_how_long_pinning_takes(linked: Linked) -> None:
    path = linked(1e12)
    assert planned(path)["graphs"][0]["offload"]["pin_seconds"] is None
    Path(path).write_text(profile_json(replace(load_profile(path), pin_bytes_per_second=1e6)))
    report = planned(path)
    found = report["graphs"][0]["offload"]
    assert found["pin_seconds"] == found["host_bytes"] / 1e6
    assert f"pinned once, in {format_seconds(found['pin_seconds'])}" in " ".join(render(report, 200).split())


def test_an_analysis_that_was_not_asked_says_nothing_of_it(linked: Linked) -> None:
    report = autockpt.analyze(nn.Linear(8, 8), torch.randn(4, 8), device=linked(1e12)).report
    assert "offload" not in report["graphs"][0]
    assert "offloaded" not in render(report, 120)


@pytest.mark.parametrize(("link", "budget", "sentence"), DECLINED)
def test_a_report_says_why_nothing_is_offloaded(
    link: tuple[float, float], budget: float, sentence: str, linked: Linked
) -> None:
    report = planned(linked(*link), budget)
    assert sentence in report["graphs"][0]["offload"]["why_not"]
    assert not report["graphs"][0]["offload"]["copies"]
    assert f"nothing: {report['graphs'][0]['offload']['why_not']}" in " ".join(render(report, 200).split())


def test_without_a_link_nothing_is_offloaded() -> None:
    assert "no link to the host" in planned("cpu")["graphs"][0]["offload"]["why_not"]


def test_a_size_bounds_what_is_on_the_host(linked: Linked) -> None:
    most = planned(linked(1e12), offload=True)["graphs"][0]["offload"]["host_bytes"]
    capped = planned(linked(1e12), offload=f"{most // 2}B")["graphs"][0]["offload"]
    assert capped["host_bytes"] <= most // 2


@pytest.mark.parametrize("size", ["much", "0GiB"])
def test_what_is_no_size_is_refused(size: str) -> None:
    with pytest.raises(OptionError, match="offload="):
        planned("cpu", offload=size)


def test_a_rank_of_a_job_is_refused() -> None:
    with pytest.raises(OptionError, match=r"a rank of a job .* does not plan it there yet"):
        autockpt.analyze(lambda: None, world_size=2, offload=True)


def test_the_frontier_without_offloading_stands_beside_the_one_with_it(linked: Linked) -> None:
    report = planned(linked(1e12))
    alone = planned(linked(1e12), offload=False)
    points = report["frontier_without_offload"]
    assert {point["method"] for point in points}.isdisjoint({"offload"})
    assert min(point["peak_bytes"] for point in points) == alone["min_peak_bytes"] >= report["min_peak_bytes"]
    fastest = {round(min(point["step_seconds"] for point in found), 9) for found in (points, alone["frontier"])}
    assert len(fastest) == 1
    assert not any(point["chosen"] for point in points)
    assert "without offloading:" in render(report, 120)


def test_at_one_budget_the_report_compares_the_step_with_and_without(linked: Linked) -> None:
    report = planned(linked(1e12))
    alone = planned(linked(1e12), memory_budget=report["budget_bytes"], offload=False)
    assert report["step_seconds"] < alone["step_seconds"]
    shown = next(line for line in render(report, 120).splitlines() if "without offloading" in line)
    assert format_seconds(alone["step_seconds"]) in shown


@pytest.mark.parametrize(("device_has_link", "offload"), [(False, True), (True, False)])
def test_there_is_one_frontier_where_nothing_may_be_offloaded(
    device_has_link: bool, offload: bool, linked: Linked
) -> None:
    report = planned(linked(1e12) if device_has_link else "cpu", offload=offload)
    assert "frontier_without_offload" not in report
    assert "without offloading" not in render(report, 120)


def test_the_plot_has_both_frontiers(linked: Linked, tmp_path: Path) -> None:
    for offload in (True, False):
        save_frontier_plot(planned(linked(1e12), offload=offload), str(tmp_path / f"{offload}.svg"))
    assert "without offloading" in (tmp_path / "True.svg").read_text()
    assert "without offloading" not in (tmp_path / "False.svg").read_text()
