"""The ledger by itself: what it records, and what it forgets."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import autockpt
from autockpt.step import ledger_of
from autockpt.step.calls.recorder import Recorder
from autockpt.step.optimizers import OptimizerStates

CPU = torch.device("cpu")


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(x) * self.weight


@pytest.fixture(autouse=True)
def ledger_without_optimizers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Planning would wait for the optimizers of other tests.
    monkeypatch.setattr(ledger_of(CPU), "optimizers", OptimizerStates(CPU))
    monkeypatch.setattr(OptimizerStates, "find", lambda _: None)
    yield
    torch._dynamo.reset()
    gc.collect()


def compiled(blocks: int = 3) -> nn.Sequential:
    model = nn.Sequential(*(Scale() for _ in range(blocks)))
    for block in model:
        block.compile(backend="autockpt", options={"memory_budget": 1.0, "lower": "eager"}, dynamic=False)
    return model


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Calls whose forward was recorded."""
    found: list[int] = []
    begin = Recorder.begin_forward

    def count(self: Recorder, call: Any, *others: Any) -> None:
        found.append(call.number)
        begin(self, call, *others)

    monkeypatch.setattr(Recorder, "begin_forward", count)
    return found


def test_a_planned_phase_is_not_recorded(recorded: list[int]) -> None:
    model = compiled()
    for _ in range(3):
        model(torch.ones(2, 8)).sum().backward()
    assert recorded
    recorded.clear()
    for _ in range(3):
        model(torch.ones(2, 8)).sum().backward()
    assert recorded == []


def test_a_phase_that_goes_on_differently_is_recorded_the_next_time_and_planned(recorded: list[int]) -> None:
    model = compiled()

    def step(micro_batches: int) -> None:
        sum((model(torch.ones(2, 8)).sum() for _ in range(micro_batches)), start=torch.zeros(())).backward()

    for _ in range(3):
        step(1)
    recorded.clear()
    step(2)
    assert recorded == []
    step(2)
    assert recorded == list(range(6))
    step(2)
    recorded.clear()
    for micro_batches in (1, 2, 1, 2):
        step(micro_batches)
    assert recorded == []
    planned = autockpt.step_decision()
    assert planned is not None
    assert len(planned.calls) == 3 + 6


def test_a_call_whose_backward_is_never_reached_ends_with_its_outputs() -> None:
    model = compiled(1)
    x = torch.ones(2, 8)
    for _ in range(3):
        model(x).sum().backward()
    y = model(x)
    y.register_hook(_fail)
    loss = y.sum()
    with pytest.raises(RuntimeError, match="on purpose"):
        loss.backward()
    del y, loss
    assert ledger_of(CPU).calls_in_flight == 0
    model(x).sum().backward()


def _fail(_: Tensor) -> None:
    raise RuntimeError("on purpose")
