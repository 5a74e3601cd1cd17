"""`autockpt verify --sizes`: one compiled model at many sizes, what it prints, and when it fails."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from autockpt.cli import main
from autockpt.errors import AutockptError
from autockpt.measure import SizedModel, verify_sizes
from autockpt.measure.sizes import SizeVerdict, WayVerdict, all_sizes, ordered, sizes_lines, sizes_markdown
from autockpt.measure.sizes import verify as verification
from autockpt.measure.sizes.calls import Calls
from autockpt.measure.sizes.variants import VariantRecorder

SCRIPT = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.up = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(2))
        self.down = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(2))
    def forward(self, x, y):
        for up, down in zip(self.up, self.down):
            x = x + down(torch.sigmoid(up(x)))
        return (x - y).pow(2).mean()

def small(batch=4, length=8):
    return Model(), (torch.randn(batch, length, 48), torch.randn(batch, length, 48))

def fixed(batch=4):
    return Model(), (torch.randn(4, 8, 48), torch.randn(4, 8, 48))

def wide(batch=4):
    return Model(batch), (torch.randn(4, 8, batch), torch.randn(4, 8, batch))
"""
BUDGET = 5 * 2**20
"""Binds at the largest size only."""
SIZES = all_sizes({"batch": (4, 64), "length": (8, 24)})


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "models.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(autouse=True)
def fresh() -> Any:
    yield
    torch._dynamo.reset()


def verdict(**changed: Any) -> WayVerdict:
    call = SizeVerdict(
        {"batch": 4}, budget_bytes=2**20, forecast_bytes=2**19, measured_bytes=2**19, gradients="equal", variant=1
    )
    good = WayVerdict("models.py:net", "1MiB", "automatic", "growing", (call,), 1, 1, 1, 1, ("any",), 3e-5, 2e-5)
    return replace(good, calls=(replace(call, **changed),))


def test_all_sizes_are_called_small_ones_first_or_in_turn() -> None:
    found = all_sizes({"batch": (8, 2), "length": (4,)})
    assert found == [{"batch": 2, "length": 4}, {"batch": 8, "length": 4}]
    numbers = all_sizes({"n": (1, 2, 3, 4, 5)})
    assert [sizes["n"] for sizes in ordered(numbers, "growing")] == [1, 2, 3, 4, 5]
    assert [sizes["n"] for sizes in ordered(numbers, "mixed")] == [5, 1, 4, 2, 3]


def test_dimensions_that_differ_between_sizes_are_the_dynamic_ones(script: Path) -> None:
    calls = Calls.load(f"{script}:small", SIZES, {}, None)
    assert calls.dynamic == ((0, 1), (0, 1))
    assert Calls.load(f"{script}:small", all_sizes({"length": (8, 24)}), {}, None).dynamic == ((1,), (1,))


@pytest.mark.parametrize(
    ("factory", "message"),
    [("fixed", "the same shapes at all --sizes"), ("wide", r"other parameters \(up\.0\.weight\)")],
)
def test_sizes_must_change_the_inputs_and_nothing_else(script: Path, factory: str, message: str) -> None:
    with pytest.raises(AutockptError, match=message):
        Calls.load(f"{script}:{factory}", all_sizes({"batch": (4, 8)}), {}, None)


@pytest.mark.parametrize("way", ["true", "mark"])
def test_every_promise_holds_at_every_size_and_in_every_order(script: Path, way: str) -> None:
    found = verify_sizes(SizedModel(f"{script}:small", SIZES, {}, lower="eager"), [BUDGET], [way], lambda text: None)
    assert [one.order for one in found] == ["growing", "mixed"]
    for one in found:
        assert one.broken == ()
        assert [call.sizes for call in one.calls] == ordered(SIZES, one.order)
        assert all(call.measured_bytes <= BUDGET for call in one.calls)
        assert max(call.plain_bytes for call in one.calls) > BUDGET, "the budget binds nowhere, and nothing is shown"
        assert {call.gradients for call in one.calls} == {"equal"}
        assert sum(call.compiled for call in one.calls) == one.compiles == len(one.ranges)
        assert 1 < one.compiles <= 4
        assert all(call.measured_bytes <= (call.forecast_bytes or 0) <= BUDGET for call in one.calls)
        assert one.choose_seconds > 0.0 < one.plain_choose_seconds


def test_a_size_that_no_plan_fits_is_named(script: Path) -> None:
    model = SizedModel(f"{script}:small", all_sizes({"batch": (4, 400)}), {}, lower="eager")
    growing, mixed = verify_sizes(model, [BUDGET], ["true"], lambda text: None)
    assert [call.broken for call in growing.calls] == [(), ("infeasible",)]
    assert [call.broken for call in mixed.calls] == [("infeasible",), ()]
    assert re.search(r"for a call with .*[xy]\.size\(0\)=400", growing.calls[1].note)
    assert any("batch=400: BROKEN: infeasible" in line for line in sizes_lines([growing]))


def test_a_call_over_the_budget_is_a_broken_promise(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "measure_peak", lambda step, device: 2**30)
    model = SizedModel(f"{script}:small", all_sizes({"batch": (4, 8)}), {}, lower="eager")
    found = verify_sizes(model, [BUDGET], ["true"], lambda text: None)
    assert all(call.broken == ("budget",) for one in found for call in one.calls)


def test_the_recorder_knows_which_variant_ran_and_when_none_did() -> None:
    recorder = VariantRecorder(lambda gm, inputs: gm)
    compiled = torch.compile(lambda x: x + 1, backend=recorder, dynamic=False)
    compiled(torch.ones(2))
    compiled(torch.ones(3))
    compiled(torch.ones(2))
    assert recorder.ran == [0, 1, 0]
    with torch.compiler.set_stance("force_eager"):
        compiled(torch.ones(2))
    assert recorder.ran == [0, 1, 0]


def test_a_page_has_every_call_and_names_what_is_broken() -> None:
    page = sizes_markdown(
        "models.py:net --sizes batch=4", [verdict(), verdict(measured_bytes=2**21, broken=("budget",))]
    )
    assert "`autockpt verify models.py:net --sizes batch=4`" in page
    assert "| automatic | growing | batch=4 | 1.0 MiB | 512.0 KiB | 512.0 KiB | 50% |" in page
    assert "200% OVER" in page
    assert "- measured within the budget: 1 of 2" in page
    assert "| automatic | growing | 1 of 1 | 1 of 1, 1 to the bit | 1 | 1 | 1 | 1 | 30.0 us (plain 20.0) |" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sizes", "batch=4,8"], "--sizes needs --budget"),
        (["--sizes", "batch=4,8", "--budget", "0.5"], "a fraction moves with the sizes"),
        (["--sizes", "batch=4", "--budget", "1MiB"], "one size is not dynamic"),
        (["--sizes", "batch=4,4", "--budget", "1MiB"], "names a size twice"),
        (["--sizes", "batch", "--budget", "1MiB"], "is not NAME=SIZE,SIZE"),
        (["--sizes", "batch=4,0", "--budget", "1MiB"], "0 is less than 1"),
        (["--sizes", "batch=4,8", "batch=16", "--budget", "1MiB"], "--sizes batch: given twice"),
        (["--sizes", "bath=4,8", "--budget", "1MiB"], "--sizes bath: "),
        (["--sizes", "batch=4,8", "--set", "batch=4", "--budget", "1MiB"], "by --sizes and by --set"),
        (["--sizes", "batch=4,8", "--dynamic", "always", "--budget", "1MiB"], "'always' is not one of automatic, true"),
        (["--dynamic", "true"], "--dynamic needs --sizes"),
        (["--sizes", "batch=4,8", "--step", "--budget", "1MiB"], "--sizes and --step are two kinds of check"),
        (["--sizes", "batch=4,8", "--steps", "3", "--budget", "1MiB"], "--steps"),
    ],
)
def test_wrong_values_are_refused_before_any_work(
    arguments: list[str], message: str, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", f"{script}:small", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.inductor
def test_the_command_writes_what_it_measured(script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, page = tmp_path / "sizes.json", tmp_path / "sizes.md"
    words = ["--sizes", "batch=4,64", "--dynamic", "true", "--budget", "2MiB"]
    assert main(["verify", f"{script}:small", *words, "--json", str(file), "--markdown", str(page)]) == 0
    rows = json.loads(file.read_text())
    assert [row["order"] for row in rows] == ["growing", "mixed"]
    assert all(call["measured_bytes"] <= 2 * 2**20 for row in rows for call in row["calls"])
    assert "--sizes batch=4,64 --dynamic true --budget 2MiB" in page.read_text()
    assert "dynamic=True" in capsys.readouterr().out
