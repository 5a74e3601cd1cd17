"""Instances planned by the shipped planner and by the search for them, beside published results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from instance_fields import fields
from random_instances import random_instance

from autockpt.bench.planner.instance_file import parse_instance
from autockpt.bench.planner.instances import (
    SEARCH,
    SHIPPED,
    InstanceRow,
    bench_instance,
    parse_budgets,
    plan_as_shipped,
)
from autockpt.cli import main
from autockpt.errors import OptionError
from autockpt.passes.instances.astar import solve_exact
from autockpt.passes.instances.instance import extra_seconds, peak_bytes


def rows(**changes: object) -> list[InstanceRow]:
    return list(bench_instance(parse_instance("chain", fields(**changes)), (), lambda _: None))


def test_budgets_are_shares_or_kilobytes() -> None:
    file = parse_instance("chain", fields())
    assert parse_budgets(["0.5", "1.0", "3"], file) == [12800, 25600, 3072]
    for wrong in ("half", "-1", "nan", "inf"):
        with pytest.raises(OptionError, match="share of the peak"):
            parse_budgets([wrong], file)


def test_each_budget_has_a_row_of_each_planner_beside_what_was_published() -> None:
    shipped, search = rows(solutions=[{"budget_eff_kb": 17, "objective": 17, "solve_time": 2}])

    assert (shipped.planner, search.planner) == (SHIPPED, SEARCH)
    for row in (shipped, search):
        assert row.overhead == pytest.approx(0.4)
        assert row.published_overhead == pytest.approx(0.7)
        assert row.peak_bytes <= row.budget_bytes == 17 * 1024
    assert search.every_plan_bound == pytest.approx(0.4)
    assert search.gap == pytest.approx(0.0)


def test_an_instance_without_published_budgets_gets_shares_of_its_peak() -> None:
    found = [row for row in rows() if row.planner == SEARCH]

    assert [round(row.share, 1) for row in found] == [0.8, 0.7, 0.6, 0.5, 0.4, 0.3]
    assert found[-1].overhead is None


@pytest.mark.parametrize("seed", range(12))
def test_the_shipped_planner_fits_every_budget_that_the_exact_search_fits_and_is_never_faster(seed: int) -> None:
    instance = random_instance(seed, forward=6, backward=6)
    whole = peak_bytes(instance, instance.save_everything)
    for share in (1.0, 0.9, 0.8):
        budget = int(whole * share)
        best, found = solve_exact(instance, budget), plan_as_shipped(instance, budget)
        if best is None:
            assert found.recomputed is None
        else:
            assert found.peak_bytes <= budget
            assert found.extra_seconds >= extra_seconds(instance, best) - 1e-9


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_only_the_costs_of_an_instance_are_minimised_whatever_its_bytes(seed: int) -> None:
    # Results of gigabytes would take a CPU long to allocate; an instance's costs already contain all that takes time.
    instance = random_instance(seed, forward=20, backward=20)
    whole = peak_bytes(instance, instance.save_everything)
    for share in (0.9, 0.7, 0.5):
        small, large = (
            plan_as_shipped(replace(instance, nbytes=instance.nbytes * unit), int(whole * share) * unit)
            for unit in (2**10, 2**30)
        )
        assert small.extra_seconds == large.extra_seconds


def test_the_command_prints_a_table_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "chain.json"
    path.write_text(json.dumps(fields()))

    assert main(["bench", "plan", "--instance", str(path), "--budget", "17", "--json", "-"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert [(row["planner"], row["overhead"]) for row in written] == [
        (SHIPPED, pytest.approx(0.4)),
        (SEARCH, pytest.approx(0.4)),
    ]
    assert main(["bench", "plan", "--instance", str(path), "--budget", "0.2"]) == 1
    shown = capsys.readouterr().out
    assert "5 KB, instance search: No plan fits the budget; this is proven." in shown
    assert shown.count("Smallest peak found: 17 KB") == 2
