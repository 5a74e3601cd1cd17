"""`torch.OutOfMemoryError` inside a call: the note that it gets, and `on_oom="replan"`. The error is raised by hand."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import autockpt
from autockpt.step import ledger_of
from autockpt.step.calls.out_of_memory import missing_bytes
from autockpt.step.optimizers import OptimizerStates
from autockpt.units import format_size

CPU = torch.device("cpu")
MESSAGE = (
    "CUDA out of memory. Tried to allocate 96.00 KiB. GPU 0 has a total capacity of 15.77 GiB of which 32.00 KiB is "
    "free. Including non-PyTorch memory, this process has 15.70 GiB memory in use."
)
MISSING = 64 * 2**10
BUDGET = 900_000


class Block(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(x)))


@pytest.fixture(autouse=True)
def no_optimizers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ledger_of(CPU), "optimizers", OptimizerStates(CPU))
    monkeypatch.setattr(OptimizerStates, "find", lambda _: None)
    gc.collect()
    yield
    torch._dynamo.reset()
    gc.collect()


def trained(on_oom: str, budget: int = BUDGET, steps: int = 3) -> Callable[[], Tensor]:
    """A step of three blocks, planned already."""
    model = nn.Sequential(*(Block() for _ in range(3)))
    options = {"memory_budget": budget, "lower": "eager", "on_oom": on_oom}
    for block in model:
        block.compile(backend="autockpt", options=options, dynamic=False)
    data = torch.randn(512, 16)

    def forward() -> Tensor:
        loss: Tensor = model(data).sum()
        return loss

    for _ in range(steps):
        forward().backward()
        model.zero_grad()
    return forward


def raising(*_: Any, **__: Any) -> Any:
    raise torch.OutOfMemoryError(MESSAGE)


def test_an_error_in_the_forward_gets_a_note_with_what_was_live_the_plan_and_what_to_try(
    monkeypatch: pytest.MonkeyPatch, live_before: int
) -> None:
    forward = trained("explain", live_before + BUDGET)
    (observed,) = ledger_of(CPU).planner._observed.values()
    monkeypatch.setattr(ledger_of(CPU).root.following[observed.signature[0]].variant, "compiled", raising)
    with pytest.raises(torch.OutOfMemoryError) as caught:
        forward()
    (note,) = caught.value.__notes__
    assert str(caught.value) == MESSAGE
    for part in ("in the forward of graph", "call 1 of its phase", "parameters", "other tensors", "The plan: graph"):
        assert part in note
    assert "forecast for the step" in note
    assert "Next: a lower memory_budget" in note
    monkeypatch.undo()
    assert ledger_of(CPU).calls_in_flight == 0


def test_replan_lowers_the_budget_by_what_was_missing_and_plans_again_loudly(live_before: int) -> None:
    budget = live_before + BUDGET
    forward = trained("replan", budget)
    before = autockpt.step_decision()
    loss = forward()
    assert loss.grad_fn is not None
    function: Any = next(
        node for node, _ in loss.grad_fn.next_functions if node is not None and hasattr(node, "_forward_cls")
    )
    original = function._forward_cls._bwd_fn
    function._forward_cls._bwd_fn = raising
    with (
        pytest.warns(
            RuntimeWarning,
            match=f"memory ran out; 64.0 KiB were missing. The budget is lowered to {format_size(budget - MISSING)}",
        ),
        pytest.raises(torch.OutOfMemoryError) as caught,
    ):
        loss.backward()
    function._forward_cls._bwd_fn = original
    (note,) = caught.value.__notes__
    assert "in the backward of graph" in note
    assert "Run the step again." in note
    del loss, caught, function
    forward().backward()
    after = autockpt.step_decision()
    assert before is not None
    assert after is not None
    assert (before.budget_bytes, after.budget_bytes) == (budget, budget - MISSING)
    assert after.peak_bytes <= after.budget_bytes


def test_what_was_missing_is_read_from_the_message_or_a_twentieth_of_the_budget() -> None:
    assert missing_bytes(torch.OutOfMemoryError(MESSAGE), BUDGET) == MISSING
    assert missing_bytes(torch.OutOfMemoryError("Tried to allocate 12 bytes."), BUDGET) == 12
    assert missing_bytes(torch.OutOfMemoryError("no more"), BUDGET) == BUDGET // 20
