"""The ledger by itself: what it records, and what it forgets."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import autockpt
from autockpt.optimizers import named_state_bytes
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


def compiled(blocks: int = 3, dynamic: bool = False, **options: Any) -> nn.Sequential:
    model = nn.Sequential(*(Scale() for _ in range(blocks)))
    for block in model:
        given = {"memory_budget": 1.0, "lower": "eager", **options}
        block.compile(backend="autockpt", options=given, dynamic=dynamic)
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


def test_a_larger_dynamic_size_is_recorded_and_planned_and_a_smaller_one_is_covered(recorded: list[int]) -> None:
    model = compiled(2, dynamic=True)

    def step(batch: int) -> None:
        model(torch.ones(batch, 8)).sum().backward()

    for batch in (4, 4, 4):
        step(batch)
    recorded.clear()
    step(3)
    assert recorded == []
    step(9)
    assert recorded == [0, 1]
    step(9)
    recorded.clear()
    for batch in (9, 5, 2, 8):
        step(batch)
    assert recorded == []
    assert len(ledger_of(CPU).planner._observed) == 1


def test_nothing_grows_over_300_steps_with_changing_batch_sizes() -> None:
    """Once every size has come with and without a backward, which takes 205 steps: larger ones are planned for."""
    model = compiled(2, dynamic=True)
    ledger = ledger_of(CPU)

    def counted(steps: int) -> tuple[int, int, int]:
        for number in range(steps):
            y = model(torch.ones(2 + 7 * number % 41, 8))
            if number % 5:
                y.sum().backward()
        del y
        model.zero_grad()
        gc.collect()
        assert ledger.calls_in_flight == 0
        objects = sum(str(type(one).__module__).startswith(("autockpt", "torch")) for one in gc.get_objects())
        return objects, ledger.recorder.counter.now(), len(ledger.planner._observed)

    first_objects, first_bytes, first_observed = counted(205)
    objects, live_bytes, observed = counted(300)
    # What other tests of this process left behind may still be freed in between: fewer objects are no growth.
    assert objects <= first_objects
    assert (live_bytes, observed) == (first_bytes, first_observed)


def test_tensors_in_reference_cycles_that_compiling_left_are_no_part_of_the_step(live_before: int) -> None:
    model = compiled()
    gc.disable()
    try:
        for number in range(3):
            loss = model(torch.ones(2, 8)).sum()
            if number == 0:
                cycle: list[Any] = [torch.zeros(2**20)]
                cycle.append(cycle)
                del cycle
            loss.backward()
    finally:
        gc.enable()
    planned = autockpt.step_decision()
    assert planned is not None
    assert planned.peak_bytes < live_before + 2**20


def test_the_state_of_a_named_optimizer_counts_before_it_exists(live_before: int) -> None:
    def peak_bytes(**options: Any) -> int:
        torch._dynamo.reset()
        gc.collect()
        compiled(1, memory_budget=live_before + 2**20, **options)(torch.ones(2, 8)).sum().backward()
        made = autockpt.step_decision()
        assert made is not None
        return made.peak_bytes

    assert peak_bytes(optimizer="AdamW") - peak_bytes() == named_state_bytes("AdamW", torch.Size([8]), torch.float32)


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
