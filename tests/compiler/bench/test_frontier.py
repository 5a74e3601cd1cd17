"""`autockpt bench frontier`: which runs are compared, and what is reported."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

from autockpt.bench import frontier as bench_module
from autockpt.bench.baselines import BLOCKS, PLAIN, TORCH, RunnableBaseline
from autockpt.bench.frontier import OURS, MeasuredFrontier, MeasuredRun, bench_frontier, shared_budgets
from autockpt.bench.frontier_report import (
    frontier_markdown,
    frontier_notes,
    frontier_rows,
    frontier_series,
    frontier_summary,
    frontier_table,
)
from autockpt.cli import main
from autockpt.errors import BudgetError
from autockpt.measure.step import load_training
from autockpt.measure.timing import interleaved_times, ratio

MIB = 2**20
SCRIPT = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(32) for _ in range(3))
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.square().mean()

def net():
    return Net(), (torch.randn(512, 32),)
"""

FRONTIER = MeasuredFrontier(
    target="models.py:net",
    graph_input_bytes=10 * MIB,
    runs=(
        MeasuredRun(PLAIN, PLAIN, None, 100 * MIB, (1.0, 1.0, 1.0), "equal"),
        MeasuredRun("torch 0.5", TORCH, None, 60 * MIB, (1.2, 1.2, 1.2), "1e+00", wrong=True),
        MeasuredRun("torch 0", TORCH, None, 50 * MIB, (1.5, 1.5, 1.5), "equal"),
        MeasuredRun(BLOCKS, BLOCKS, note="the model has no list of blocks of one class"),
        MeasuredRun("autockpt 100.0 MiB", OURS, 100 * MIB, 99 * MIB, (0.9, 1.0, 1.1), "equal"),
        MeasuredRun("autockpt 60.0 MiB", OURS, 60 * MIB, 61 * MIB, (1.26, 1.26, 1.26), "equal"),
        MeasuredRun("autockpt 50.0 MiB", OURS, 50 * MIB, 50 * MIB, (1.2, 1.2, 1.2), "equal"),
        MeasuredRun("autockpt minimum peak", OURS, None, 30 * MIB, (1.4, 1.4, 1.4), "equal"),
    ),
)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "models.py"
    path.write_text(SCRIPT)
    return path


def test_nearly_equal_peaks_share_one_run_of_ours_at_the_lower() -> None:
    assert shared_budgets([2000, 1000, 1004, 1006, 1000]) == {1000: 1000, 1004: 1000, 1006: 1006, 2000: 2000}


def test_every_baseline_that_ran_is_paired_with_ours_at_its_peak() -> None:
    met = {pair.baseline.name: (pair.ours.name, pair.holds) for pair in FRONTIER.pairs}
    assert met == {
        PLAIN: ("autockpt 100.0 MiB", True),
        "torch 0.5": ("autockpt 60.0 MiB", False),
        "torch 0": ("autockpt 50.0 MiB", True),
    }


def test_only_our_own_excess_failure_or_wrong_gradients_count_as_broken() -> None:
    others = tuple(one for one in FRONTIER.runs if one.name not in ("torch 0.5", "autockpt 60.0 MiB"))
    held = replace(FRONTIER, runs=others)
    assert FRONTIER.broken
    assert not held.broken
    smallest = others[-1]
    for worse in (replace(smallest, wrong=True), replace(smallest, peak_bytes=None), replace(smallest, note="")):
        assert replace(held, runs=(*others[:-1], worse)).broken == (worse != smallest)


def test_json_holds_everything_that_was_measured() -> None:
    assert MeasuredFrontier.from_json(json.loads(json.dumps(FRONTIER.as_json()))) == FRONTIER


def test_a_slow_round_is_slow_for_both() -> None:
    found = ratio((1.1, 11.0, 1.1, 1.1, 110.0), (1.0, 10.0, 1.0, 1.0, 100.0))
    assert (found.low, found.middle, found.high) == pytest.approx((1.1, 1.1, 1.1))


def test_an_interval_holds_the_ratio_and_shows_the_noise() -> None:
    found = ratio((1.0, 1.2, 1.4, 1.1, 1.3), (1.0, 1.0, 1.0, 1.0, 1.0))
    assert found.middle == 1.2
    assert found.low < 1.2 < found.high


def test_every_round_takes_one_step_of_each_and_the_first_rounds_do_not_count() -> None:
    taken: list[str] = []
    steps = {name: lambda name=name: taken.append(name) for name in "abc"}
    times = interleaved_times(steps, repeats=3, warmup=2, progress=lambda text: None)
    assert [sorted(taken[n : n + 3]) for n in range(0, 15, 3)] == [["a", "b", "c"]] * 5
    assert {name: len(seconds) for name, seconds in times.items()} == {"a": 3, "b": 3, "c": 3}


def test_the_table_of_a_model(golden: Callable[[str], None]) -> None:
    console = Console(width=150, record=True, file=io.StringIO())
    console.print(frontier_table(FRONTIER))
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    golden("\n".join([*lines, *frontier_notes(FRONTIER), *frontier_summary([FRONTIER])]))


def test_the_summary_is_over_all_baselines_and_minimum_peaks_are_a_geometric_mean() -> None:
    smallest = replace(FRONTIER.runs[-1], peak_bytes=20 * MIB)
    lower = replace(FRONTIER, target="models.py:other", runs=(*FRONTIER.runs[:-1], smallest))
    lines = frontier_summary([FRONTIER, lower])
    assert lines[0] == "ours holds the peak of 4 of 6 baselines; models: 2"
    assert "median 1.00; worst 1.05" in lines[1]
    # sqrt(30/50 * 20/50), and sqrt(20/40 * 10/40) without the 10 MiB that every peak holds.
    assert "0.49 with parameters and inputs, 0.35 without" in "".join(lines)


def test_a_model_that_does_not_run_is_reported() -> None:
    failed = MeasuredFrontier("models.py:gone", failure="did not run: no such weights")
    assert failed.broken
    assert frontier_notes(failed) == ["gone: did not run: no such weights"]
    assert frontier_summary([failed, FRONTIER]) == frontier_summary([FRONTIER])
    assert "| torch 0.5 | 60.0 MiB |" in frontier_markdown("", [failed, FRONTIER], [])


def test_a_plot_has_every_run() -> None:
    points = {one.name: list(one.points) for one in frontier_series(FRONTIER)}
    assert points[PLAIN] == [(100.0, 1.0)]
    assert points[OURS] == [(30.0, 1.4), (50.0, 1.2), (61.0, 1.26), (99.0, 1.0)]
    assert points[BLOCKS] == []


def test_what_cannot_run_is_a_row_with_its_reason(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(target: str, budget: int | float) -> None:
        raise BudgetError("no plan fits\nand so on", 1, 2)

    def fail(target: str) -> None:
        raise RuntimeError("backend='inductor' raised:\nLoweringError: no kernel\nand so on")

    fakes = [RunnableBaseline(PLAIN, PLAIN, load_training), RunnableBaseline("torch 0.5", TORCH, fail)]
    monkeypatch.setattr(bench_module, "runnable_baselines", lambda budgets: fakes)
    monkeypatch.setattr(bench_module, "_start_ours", refuse)
    frontier = bench_frontier(f"{script}:net", [0.5], 2, lambda text: None)
    found = {one.series: one.note for one in frontier.runs}
    assert found == {PLAIN: "", TORCH: "backend='inductor' raised: LoweringError: no kernel", OURS: "no plan fits"}
    assert [row[0] for row in frontier_rows(frontier)] == [
        PLAIN,
        f"torch 0.5: {found[TORCH]}",
        "(autockpt minimum peak)",
    ]
    assert [row[4] for row in frontier_rows(frontier)] == ["did not run", "", "did not run"]
    assert frontier.broken
    assert "the peak of plain Inductor is" in frontier_summary([frontier])[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py:net"], "is not SCRIPT.py:FACTORY"),
        (["{script}:net", "--plot", "frontier.doc"], "a plot is one of"),
    ],
)
def test_a_wrong_argument_is_one_sentence(
    arguments: list[str], message: str, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "frontier", *(word.format(script=script) for word in arguments)]) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_models_run_in_processes_of_their_own_and_say_why_they_did_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.py"
    path.write_text("one = two = 1\nraise RuntimeError('no such data')\n")
    assert main(["bench", "frontier", f"{path}:one", f"{path}:two"]) == 1
    shown = capsys.readouterr().out
    for name in ("one", "two"):
        assert f"{name}: did not run: exit code 2: autockpt: {path} does not run: RuntimeError: no such data" in shown


@pytest.mark.parametrize("wrong", [["--budgets", "1.5"], ["--repeats", "0"], ["--budgets", "half"]])
def test_a_wrong_number_is_a_usage_error(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "frontier", *wrong, "--", "models.py:net"]) == 2
    assert wrong[1] in capsys.readouterr().err


@pytest.mark.inductor
def test_three_blocks_are_measured_from_end_to_end(script: Path, tmp_path: Path) -> None:
    file, page, picture = tmp_path / "frontier.json", tmp_path / "table.md", tmp_path / "frontier.svg"
    outputs = ["--json", str(file), "--markdown", str(page), "--plot", str(picture)]
    code = main(["bench", "frontier", f"{script}:net", "--budgets", "0.0", "--repeats", "2", *outputs])
    (fields,) = json.loads(file.read_text())
    frontier = MeasuredFrontier.from_json(fields)
    assert code == 0
    assert [baseline.name for baseline in frontier.baselines] == [PLAIN, "torch 0", BLOCKS]
    assert all(pair.holds for pair in frontier.pairs)
    assert not any(one.wrong or one.note or len(one.times) != 2 for one in frontier.runs)
    assert f"| {BLOCKS} |" in page.read_text()
    assert picture.stat().st_size > 0
    assert torch._functorch.config.activation_memory_budget == 1.0
