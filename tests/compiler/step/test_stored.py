"""The plan of a step on disk: a second process compiles each graph once, with its final plan."""

from __future__ import annotations

import gc
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from train_blocks import train

from autockpt.step import ledger_of
from autockpt.step.optimizers import OptimizerStates
from autockpt.step.stored.step_file import read_step

SCRIPT = Path(__file__).parents[2] / "train_blocks.py"
BUDGET = 2_000_000
STEPS = 3


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AUTOCKPT_CACHE_DIR", str(tmp_path))
    # Planning would wait for the optimizers of other tests.
    monkeypatch.setattr(ledger_of(torch.device("cpu")), "optimizers", OptimizerStates(torch.device("cpu")))
    monkeypatch.setattr(OptimizerStates, "find", lambda _: None)
    gc.collect()
    yield
    forget_compiled_code()


def forget_compiled_code() -> None:
    torch._dynamo.reset()
    gc.collect()


def process(lower: str, budget: float) -> dict[str, Any]:
    """What a training process of its own prints."""
    command = [sys.executable, str(SCRIPT), lower, str(budget), str(STEPS)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, env=dict(os.environ), check=False)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def check_second(first: dict[str, Any], second: dict[str, Any]) -> None:
    different = {tuple(plan) for plan in first["plans"]}
    assert first["compiled"][-1] > len(different)
    assert second["compiled"] == [len(different)] * STEPS
    assert second["plans"] == first["plans"]
    assert second["gradient"] == first["gradient"]
    assert (second["budget"], second["forecast"]) == (first["budget"], first["forecast"])
    assert max(second["peaks"]) <= second["budget"]
    assert second["peaks"][0] == first["peaks"][-1]


def test_a_second_process_compiles_each_graph_once_and_holds_the_budget_from_its_first_step() -> None:
    first = process("eager", BUDGET)
    assert first["budget"] == BUDGET
    assert len({tuple(plan) for plan in first["plans"]}) == 3, "two graphs, one of them in two variants by position"
    check_second(first, process("eager", BUDGET))


@pytest.mark.inductor
def test_a_second_process_with_inductor_does_so_too() -> None:
    check_second(process("inductor", 0.4), process("inductor", 0.4))


def stored(folder: Path) -> list[Path]:
    return sorted((folder / "steps").glob("*.json"))


def test_stored_plans_that_cannot_be_used_are_ignored_with_a_sentence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, live_before: int
) -> None:
    budget = live_before + BUDGET
    first = train("eager", budget, STEPS)
    for path in stored(tmp_path):
        step = json.loads(path.read_text())
        for graph in step["graphs"]:
            for plan in graph["plans"]:
                plan["backward"] = plan["backward"][1:]
        path.write_text(json.dumps(step))
    forget_compiled_code()
    with caplog.at_level(logging.WARNING, logger="autockpt"):
        again = train("eager", budget, STEPS)
    assert again["compiled"] == first["compiled"]
    assert again["gradient"] == first["gradient"]
    assert max(again["peaks"]) <= budget
    ignored = [record.getMessage() for record in caplog.records if "the stored plan of a step" in record.getMessage()]
    assert len(ignored) == 2


def test_more_live_outside_than_stored_runs_safe_variants_and_is_planned_again(live_before: int) -> None:
    budget = live_before + BUDGET
    train("eager", budget, STEPS)
    forget_compiled_code()
    more = torch.zeros(50_000)
    again = train("eager", budget, STEPS)
    assert max(again["peaks"]) <= budget
    assert again["compiled"][-1] > 3
    del more


VALID = {
    "kind": "autockpt step",
    "schema": 1,
    "graphs": [{"key": "a", "plans": [{"method": "m", "saved": [], "backward": ["x"]}]}],
    "phases": [
        {
            "passes": [0, -1],
            "calls": [
                {
                    "graph": 0,
                    "plan": 0,
                    "saved_bytes": 0,
                    "forward_bytes": 1,
                    "backward_bytes": 1,
                    "recompute_seconds": 0.0,
                }
            ],
            "limit_bytes": None,
        }
    ],
    "outcome": "fits",
    "budget_bytes": 1,
    "peak_bytes": 1,
    "eager_bytes": 0,
    "outside_bytes": {},
    "step_seconds": 0.0,
}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("{", id="damaged"),
        pytest.param("[" * 100_000, id="nested"),
        pytest.param(json.dumps(VALID | {"schema": 2}), id="of another schema"),
        pytest.param(json.dumps(VALID | {"kind": "autockpt plan"}), id="of another kind"),
        pytest.param(json.dumps(VALID | {"graphs": []}), id="calls of no graph"),
        pytest.param(json.dumps(VALID).replace('"a"', '"b"'), id="of another graph"),
        pytest.param(json.dumps(VALID).replace("[0, -1]", "[-1, 0]"), id="begins with a backward"),
    ],
)
def test_a_damaged_or_foreign_file_is_ignored_with_one_sentence(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(VALID))
    assert read_step(tmp_path, "a") is not None
    assert read_step(tmp_path, "b") is None
    assert not caplog.records
    (tmp_path / "a.json").write_text(content)
    assert read_step(tmp_path, "a") is None
    (said,) = (record.getMessage() for record in caplog.records)
    assert said.startswith("the stored plan of a step, a.json, is ignored, and the step is planned anew: ")
    assert "\n" not in said
