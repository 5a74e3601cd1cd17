"""`autockpt diff A B`: the difference of two plan files, and the exit code of diff(1)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graphs import schedule
from msgspec.structs import replace
from plans import decision, layers, setup

from autockpt import Plan
from autockpt.cli import main
from autockpt.passes.graph.order import traced_order
from autockpt.passes.planners.fixed import decide_fixed
from autockpt.passes.problem.plan import Budget
from autockpt.plans.graph_plan import SavedTensor


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Plan.of([decision(layers(6), 0.0)]).save("tight.json")
    Plan.of([decision(layers(6), 1.0)]).save("wide.json")
    Plan.of([decision(layers(7), 0.0)]).save("other.json")


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["diff", "--json", *arguments])
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, shown


def read(capsys: pytest.CaptureFixture[str], *files: str) -> tuple[int, str]:
    code = main(["diff", *files])
    shown = capsys.readouterr()
    assert shown.err == ""
    return code, "\n".join(line.rstrip() for line in shown.out.rstrip().splitlines())


def test_the_diff_of_two_plans(capsys: pytest.CaptureFixture[str], golden: Callable[[str], None]) -> None:
    code, text = read(capsys, "tight.json", "wide.json")
    assert code == 1
    golden(text)


def test_the_diff_of_a_plan_and_itself(capsys: pytest.CaptureFixture[str], golden: Callable[[str], None]) -> None:
    code, text = read(capsys, "tight.json", "tight.json")
    assert code == 0
    golden(text)


def test_the_diff_of_two_graphs(capsys: pytest.CaptureFixture[str], golden: Callable[[str], None]) -> None:
    code, text = read(capsys, "tight.json", "other.json")
    assert code == 1
    golden(text)


def test_the_diff_of_a_graph_more(capsys: pytest.CaptureFixture[str], golden: Callable[[str], None]) -> None:
    Plan((*Plan.load("tight.json").graphs, *Plan.load("other.json").graphs)).save("both.json")
    code, text = read(capsys, "both.json", "tight.json")
    assert code == 1
    golden(text)


def test_json_has_what_only_one_of_them_saves(capsys: pytest.CaptureFixture[str]) -> None:
    tight, wide = decision(layers(6), 0.0), decision(layers(6), 1.0)
    code, shown = as_json(capsys, "tight.json", "wide.json")
    (graph,) = shown["graphs"]
    assert (code, shown["same"], graph["same"], graph["graph_difference"]) == (1, False, False, "")
    assert {saved["name"] for saved in graph["saved_only_by_b"]} == wide.plan.saved - tight.plan.saved
    assert {saved["name"] for saved in graph["saved_only_by_a"]} == tight.plan.saved - wide.plan.saved
    assert all(saved["bytes"] == 1000 and saved["module"].startswith("layers.") for saved in graph["saved_only_by_b"])
    assert (graph["a"]["peak_bytes"], graph["b"]["peak_bytes"]) == (tight.forecast.peak_bytes, wide.forecast.peak_bytes)
    assert graph["a"]["recomputations"] > graph["b"]["recomputations"] == 0


def test_another_forecast_of_the_same_plan_is_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    (graph,) = Plan.load("tight.json").graphs
    Plan((replace(graph, step_seconds=1.0, peak_bytes=1),)).save("forecast.json")
    code, shown = as_json(capsys, "tight.json", "forecast.json")
    assert (code, shown["same"]) == (0, True)
    assert shown["graphs"][0]["b"]["peak_bytes"] == 1


def test_another_order_is_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    graph = layers(6)
    plan = schedule(graph, {"f0", "f3"}, traced_order(graph))
    moved = dataclasses.replace(plan, backward=("f1", *(name for name in plan.backward if name != "f1")))
    for name, one in (("one.json", plan), ("two.json", moved)):
        Plan.of([decide_fixed(graph, one, setup(Budget(total_bytes=10**6)))]).save(name)
    code, shown = as_json(capsys, "one.json", "two.json")
    assert code == 1
    assert shown["graphs"][0]["order_difference"] == "operation 1 is `f4` in one.json but `f1` in two.json"


def test_a_tensor_saved_without_need_is_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    (graph,) = Plan.load("tight.json").graphs
    Plan((replace(graph, saved=(*graph.saved, SavedTensor("loss", 1, ""))),)).save("more.json")
    assert main(["diff", "tight.json", "more.json"]) == 1
    assert "the same backward, but other tensors are saved" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(None, "cannot be read: No such file", id="no such file"),
        pytest.param('{"schema": 1, "kind": "autoc', "is not complete JSON", id="cut off"),
        pytest.param(
            '{"schema": 1, "kind": "autockpt analysis"}',
            "is not a plan: it must be an object with `kind` 'autockpt plan'",
            id="a report",
        ),
        pytest.param(
            '{"schema": 9, "kind": "autockpt plan"}',
            "has schema 9, and this version of autockpt reads schemas 1 to 3: update it",
            id="from the future",
        ),
        pytest.param(2**31, "has 2.00 GiB, and a plan has at most", id="2 GiB"),
    ],
)
def test_what_is_no_plan_is_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], content: str | int | None, why: str
) -> None:
    if isinstance(content, str):
        Path("bad.json").write_text(content)
    if isinstance(content, int):
        with Path("bad.json").open("wb") as file:
            file.truncate(content)
    for arguments in (["tight.json", "bad.json"], ["bad.json", "tight.json", "--json"]):
        assert main(["diff", *arguments]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert len(shown.err.strip().splitlines()) == 1
        assert shown.err.startswith("autockpt: plan bad.json ")
        assert why in shown.err


def test_a_name_that_looks_like_markup_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    raw = json.loads(Path("wide.json").read_text())
    raw["graphs"][0]["saved"][0]["module"] = "[red]layers[/nothing]"
    Path("[bold].json").write_text(json.dumps(raw))
    assert main(["diff", "[bold].json", "tight.json"]) == 1
    shown = capsys.readouterr().out
    assert "[red]layers[/nothing]" in shown
    assert "[bold].json" in shown


def test_a_thousand_tensors_are_not_all_printed(capsys: pytest.CaptureFixture[str]) -> None:
    graph = layers(60)
    for name, saved in (("none.json", {"f0"}), ("all.json", {f"f{number}" for number in range(60)})):
        plan = schedule(graph, saved, traced_order(graph))
        Plan.of([decide_fixed(graph, plan, setup(Budget(total_bytes=10**6)))]).save(name)
    assert main(["diff", "none.json", "all.json"]) == 1
    assert "and 19 more; --json has them all" in capsys.readouterr().out
