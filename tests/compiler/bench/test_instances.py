"""Instance files, and their bench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autockpt.bench.instances import (
    InstanceError,
    bench_plan,
    load_instance,
    parse_budgets,
    parse_instance,
    run_instance,
)
from autockpt.cli import main
from autockpt.errors import OptionError
from autockpt.passes.instances.instance import peak_bytes


def fields(**changes: Any) -> dict[str, Any]:
    """A chain of three, read backwards; operation 6 is alone."""
    edges = [[0, 1], [1, 2], [2, 3], [1, 4], [3, 4], [0, 5], [4, 5]]
    given = {"n": 7, "edges": edges, "mem_kb": [8, 8, 8, 1, 1, 1, 0], "cost": [4, 2, 1, 1, 1, 1, 0], "loss": 2}
    return {**given, **changes}


def test_an_instance_becomes_a_task() -> None:
    instance = parse_instance("chain", fields())

    assert instance.instance.boundary == 3
    assert instance.instance.reads[4] == (1, 3)
    assert instance.instance.nbytes.tolist() == [8192, 8192, 8192, 1024, 1024, 1024, 0]
    assert instance.base == 10.0
    assert peak_bytes(instance.instance, instance.instance.save_everything) == 25 * 1024


def test_published_budgets_run_from_large_to_small() -> None:
    solutions = [{"budget_eff_kb": 17, "objective": 12, "solve_time": 3.5}, {"budget_eff_kb": 20, "objective": 11}]
    published = parse_instance("chain", fields(solutions=solutions, fixed_kb=[0] * 7)).published

    assert [(one.budget_bytes, one.objective) for one in published] == [(20480, 11.0), (17408, 12.0)]
    assert [one.solve_seconds for one in published] == [None, 3.5]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n": 0}, "n is 0"),
        ({"n": 7.5}, "whole number"),
        ({"loss": 7}, "numbered from 0"),
        ({"cost": [1, 2]}, "2 entries for 7"),
        ({"cost": [1, 1, 1, 1, 1, 1, -1]}, r"cost\[6\] is -1"),
        ({"mem_kb": [1, 1, 1, 1, 1, 1, "x"]}, r"mem_kb\[6\]"),
        ({"mem_kb": 5}, "a list is needed"),
        ({"edges": [[1, 0]]}, "earlier ones"),
        ({"edges": [[0, 7]]}, "earlier ones"),
        ({"edges": [[0, 1, 2]]}, "a pair"),
        ({"solutions": [{"objective": 3}]}, "budget_eff_kb"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InstanceError, match=said):
        parse_instance("wrong", fields(**changes))


def test_a_file_that_is_no_instance_says_which_and_why(tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text("hello")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "part.json").write_text('{"n": 1}')
    for name, said in (("none", "cannot read"), ("text", "not JSON"), ("list", "JSON object"), ("part", "missing")):
        with pytest.raises(InstanceError, match=rf"{name}\.json.*{said}|{said}.*{name}\.json"):
            load_instance(tmp_path / f"{name}.json")


def test_budgets_are_shares_or_kilobytes() -> None:
    assert parse_budgets(["0.5", "1.0", "3"], 1000) == [500, 1000, 3072]
    for wrong in ("half", "-1", "nan", "inf"):
        with pytest.raises(OptionError, match="share of the peak"):
            parse_budgets([wrong], 1000)


def test_each_budget_has_a_row_beside_what_was_published() -> None:
    instance = parse_instance("chain", fields(solutions=[{"budget_eff_kb": 17, "objective": 17, "solve_time": 2}]))
    (row,) = bench_plan(instance)

    assert row.overhead == pytest.approx(0.4)
    assert row.published_overhead == pytest.approx(0.7)
    assert row.peak_bytes <= row.budget_bytes == 17 * 1024
    assert row.every_plan_bound == pytest.approx(0.4)
    assert row.gap == pytest.approx(0.0)


def test_an_instance_without_published_budgets_gets_shares_of_its_peak() -> None:
    rows = bench_plan(parse_instance("chain", fields()))

    assert [round(row.share, 1) for row in rows] == [0.8, 0.7, 0.6, 0.5, 0.4, 0.3]
    assert rows[-1].overhead is None


def test_the_command_prints_a_table_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "chain.json"
    path.write_text(json.dumps(fields()))

    assert main(["bench", "plan", "--instance", str(path), "--budget", "17", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["overhead"] == pytest.approx(0.4)
    assert run_instance(path, ["0.2"]) == 1
    assert "Lowest peak found: 17 KB" in capsys.readouterr().out
