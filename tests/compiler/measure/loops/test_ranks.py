"""`autockpt verify --step --ranks`: a loop on two processes with `lower="eager"`, and jobs that fail."""

from __future__ import annotations

from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from autockpt.cli import main
from autockpt.measure.loops import ranks
from autockpt.measure.loops.ranks import RankJob, _judged, _results, verify_on_ranks
from autockpt.measure.loops.report import step_summary
from autockpt.measure.loops.verify_step import StepVerdict

LOOP = """
import torch, torch.distributed as dist
from torch import nn

class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(6))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).sin()
        return x.square().mean()

def loop(compile_with):
    model = Layers()
    compiled = torch.compile(model, **compile_with)

    def step():
        loss = compiled(torch.randn(2, 256, 64)[dist.get_rank()])
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        return loss.detach()

    return model, step
"""


def test_a_loop_on_two_ranks_is_checked_on_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOCKPT_SCOPE", "step")
    (tmp_path / "loop.py").write_text(LOOP)
    job = RankJob(f"{tmp_path}/loop.py:loop", 2, ["1MiB"], steps=3, curve_steps=2, lower="eager")
    found = verify_on_ranks(job, lambda _: None)
    assert [(one.rank, one.broken, one.gradients, one.losses) for one in found] == [
        (0, (), "equal", "equal"),
        (1, (), "equal", "equal"),
    ]
    assert found[0].plans == found[1].plans != {}
    assert found[0].recompute_share > 0
    assert "ranks with equal graphs run equal plans: 2 of 2" in step_summary(found)


def test_ranks_run_as_many_steps_whether_or_not_they_return_a_loss(tmp_path: Path) -> None:
    """As stages of a pipeline, of which the last one has the loss."""
    (tmp_path / "loop.py").write_text(
        LOOP.replace("return loss.detach()", "return loss.detach() if dist.get_rank() else None")
    )
    job = RankJob(f"{tmp_path}/loop.py:loop", 2, ["1MiB"], steps=3, curve_steps=2, lower="eager")
    assert [(one.rank, one.losses) for one in verify_on_ranks(job, lambda _: None)] == [(0, ""), (1, "equal")]


def pipes(count: int) -> list[tuple[Connection, Connection]]:
    return [Pipe(duplex=False) for _ in range(count)]


def test_when_a_rank_dies_or_fails_the_others_have_seconds_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "_GRACE_SECONDS", 0.1)
    (first, sends), (second, dies), (third, _hangs) = pipes(3)
    sends.send(("progress", "a step"))
    sends.send(("done", []))
    dies.close()
    told: list[str] = []
    assert _results([first, second, third], told.append) == [
        [],
        "its process ended",
        "stopped, because another rank had failed",
    ]
    assert told == ["a step"]


def test_plans_that_differ_for_one_graph_are_a_broken_promise_and_first_steps_are_none() -> None:
    here = StepVerdict("loops.py:ddp", "middle", plans={"graph": "a", "of one stage": "b"}, broken=("first steps",))
    there = replace(here, plans={"graph": "a", "of the other": "c"})
    assert _judged(here, [here, there]).broken == ()
    assert _judged(here, [here, replace(there, plans={"graph": "d"})]).broken == ("plans",)


def test_ranks_are_for_loops(capsys: Any) -> None:
    assert main(["verify", "--ranks", "2", f"{__file__}:main"]) == 2
    assert "--ranks needs --step" in capsys.readouterr().err
