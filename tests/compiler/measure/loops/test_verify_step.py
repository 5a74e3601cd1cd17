"""`autockpt verify --step`: training loops with `lower="eager"`, and what is printed of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from autockpt.cli import main
from autockpt.commands.console import Children
from autockpt.errors import AutockptError
from autockpt.measure import StepVerdict, step_markdown, step_summary, verify_step
from autockpt.measure.loops.loop import Loop
from autockpt.measure.loops.reference import LoopReference

MiB = 2**20
LOOPS = str(Path(__file__).parents[4] / "examples" / "steps" / "loops.py")
GOOD = StepVerdict(
    target="loops.py:blocks",
    budget="middle",
    budget_bytes=100 * MiB,
    forecast_bytes=98 * MiB,
    measured_bytes=(60 * MiB, 97 * MiB, 97 * MiB),
    plain_bytes=150 * MiB,
    min_peak_bytes=50 * MiB,
    gradients="equal",
    recompute_share=0.1,
    time_ratio=1.08,
)


@pytest.fixture(autouse=True)
def whole_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AUTOCKPT_SCOPE")


def test_every_promise_holds_for_blocks_compiled_one_by_one() -> None:
    shown: list[str] = []
    least, middle = verify_step(f"{LOOPS}:blocks2", (), shown.append, {}, steps=3, lower="eager")
    assert least.broken == middle.broken == ()
    assert least.budget_bytes == int(1.1 * least.min_peak_bytes) < middle.budget_bytes < middle.plain_bytes
    assert least.gradients == middle.gradients == "equal"
    assert least.recompute_share >= middle.recompute_share > 0
    assert len(shown) == 4


def test_a_budget_that_nothing_fits_is_a_broken_promise() -> None:
    (verdict,) = verify_step(f"{LOOPS}:whole", ["1MiB"], lambda _: None, {"layers": 1}, steps=1, lower="eager")
    assert verdict.broken == ("fits",)
    assert "below the minimum peak" in verdict.note


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        ("def loop(): ...", "is no training loop: it must take a dict, the keyword arguments of torch.compile"),
        ("def loop(compile_with): raise OSError('no data')", "raised OSError: no data"),
        ("def loop(compile_with): return 7", "must return a model and a function that runs one training step"),
    ],
)
def test_what_is_no_training_loop_is_one_sentence(tmp_path: Path, factory: str, sentence: str) -> None:
    (tmp_path / "loop.py").write_text(factory)
    with pytest.raises(AutockptError, match=f"loop.py:loop {sentence}"):
        verify_step(f"{tmp_path}/loop.py:loop", (), lambda _: None, {}, steps=1, lower="eager")


def test_a_gradient_counts_as_different_where_plain_inductor_repeats_it(tmp_path: Path) -> None:
    model, noise = torch.nn.Linear(2, 2), 0.0

    def step() -> None:
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter) + noise * (parameter is model.bias)

    loop, reference = Loop(model, step), LoopReference(tmp_path)
    reference.record(loop, 1)
    noise = 1e-6
    reference.repeat(loop, 1)
    assert str(reference.compare(model, 0)).startswith("noise")
    assert model.weight.grad is not None
    model.weight.grad += 1e-6
    assert reference.compare(model, 0).beyond_noise == pytest.approx(1e-6, rel=0.1)
    model.weight.grad = None
    assert reference.compare(model, 0).beyond_noise == float("inf")


def test_the_page_has_a_row_for_each_budget_and_names_what_is_broken(golden: Callable[[str], None]) -> None:
    over = replace(GOOD, budget="minimum + 10 %", measured_bytes=(101 * MiB,) * 3, broken=("budget", "first steps"))
    failed = StepVerdict("loops.py:gan", "", note="did not run: exit code 9", broken=("did not run",))
    verdicts = [GOOD, over, failed]
    page = step_markdown("--step loops.py:blocks loops.py:gan", verdicts, step_summary(verdicts))
    golden(page.partition(": ")[2])


def test_several_loops_run_in_a_process_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Children, target: str, command: list[str], progress: object) -> list[dict[str, object]]:
        assert command == ["verify", "--step", "--budget", "0.5"]
        if target == "loops.py:gan":
            raise AutockptError("did not run: exit code 9")
        return [replace(GOOD, target=target).as_json()]

    monkeypatch.setattr(Children, "run", run)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loops.py").write_text("blocks = gan = print")
    files = ["--json", "rows.json", "--markdown", "page.md"]
    assert main(["verify", "--step", "loops.py:blocks", "loops.py:gan", "--budget", "0.5", *files]) == 1
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [row["broken"] for row in rows] == [[], ["did not run"]]
    page = (tmp_path / "page.md").read_text()
    assert "gan" in page
    assert "`autockpt verify --step loops.py:blocks loops.py:gan --budget 0.5 " in page
