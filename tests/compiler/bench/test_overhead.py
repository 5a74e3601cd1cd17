"""`autockpt bench overhead`: what is compared, and what is reported."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from autockpt.bench.overhead import NO_RECOMPUTATION, Overhead, TimedPlan, spearman
from autockpt.bench.overhead_report import overhead_markdown, overhead_summary, overhead_table, shown_plans
from autockpt.cli import main

SCRIPT = """
import torch
from torch import nn

def net():
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 32))
    return model, (torch.randn(256, 32),)
"""


def timed(name: str, budget: float | None, predicted: float, measured: float) -> TimedPlan:
    families = {"matmul": (predicted - 1, measured - 1), "convolution": (0.0, 0.0)}
    return TimedPlan(name, budget, predicted, measured, predicted, measured, measured - 0.01, measured + 0.01, families)


OVERHEAD = Overhead(
    target="models.py:net",
    plans=(
        timed(NO_RECOMPUTATION, None, 1.0, 1.0),
        timed("budget 1", 1.0, 1.02, 1.01),
        timed("budget 0.5", 0.5, 1.10, 1.05),
        timed("budget 0", 0.0, 1.30, 1.60),
    ),
    device="mine",
)


def test_equal_ranks_correlate_by_1_and_reversed_ones_by_minus_1() -> None:
    assert spearman([1.0, 2.0, 3.0], [10.0, 20.0, 21.0]) == 1.0
    assert spearman([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == -1.0


def test_equal_values_share_a_rank() -> None:
    # Ranks 0.5 0.5 2 3 against 0 1 2 3: Spearman's coefficient by hand.
    assert spearman([1.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0]) == pytest.approx(4.5 / (4.5 * 5.0) ** 0.5)


def test_plans_that_all_take_equally_long_have_no_correlation() -> None:
    assert spearman([1.0, 1.0], [1.0, 2.0]) == 0.0


def test_the_plan_nearest_to_a_budget_is_shown_once() -> None:
    assert [found.name for found in shown_plans(OVERHEAD, [0.1, 0.0, 0.4])] == ["budget 0.5", "budget 0"]


def test_json_holds_everything_that_was_measured() -> None:
    back = Overhead.from_json(json.loads(json.dumps(OVERHEAD.as_json())))
    assert back.plans[1].measured == OVERHEAD.plans[1].measured
    assert back.rank_correlation == OVERHEAD.rank_correlation


def test_the_table_and_summary_of_two_models(golden: Callable[[str], None]) -> None:
    console = Console(file=io.StringIO(), width=130)
    console.print(overhead_table([OVERHEAD, Overhead("models.py:other", failure="did not run: no module")], [0.0, 0.5]))
    assert isinstance(console.file, io.StringIO)
    lines = overhead_summary([OVERHEAD], [0.0, 0.5])
    golden("\n".join([console.file.getvalue(), *lines]))
    assert all(line.strip() in overhead_markdown([OVERHEAD], [0.0, 0.5], lines) for line in lines)


def test_a_script_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "overhead", "nowhere.py:net"]) == 2
    assert "nowhere.py" in capsys.readouterr().err


def test_an_unknown_profile_is_refused_before_any_model_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "models.py"
    script.write_text(SCRIPT)
    assert main(["bench", "overhead", f"{script}:net", f"{script}:net", "--device", "h1000"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "unknown device 'h1000'" in line


@pytest.mark.inductor
def test_predicted_and_measured_ratios_are_printed_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, result = tmp_path / "models.py", tmp_path / "overhead.json"
    script.write_text(SCRIPT)
    assert main(["bench", "overhead", f"{script}:net", "--plans", "2", "--repeats", "3", "--json", str(result)]) == 0
    (written,) = json.loads(result.read_text())
    assert written["plans"][0]["name"] == NO_RECOMPUTATION
    assert written["plans"][0]["predicted"] == written["plans"][0]["measured"] == 1.0
    assert all(plan["predicted"] > 0 and plan["measured"] > 0 for plan in written["plans"])
    assert "rank correlation" in capsys.readouterr().out
