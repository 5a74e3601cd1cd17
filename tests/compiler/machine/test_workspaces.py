"""What operators allocate inside themselves with `lower="eager"` is measured, and counted in the peak."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import autockpt
from autockpt.machine import workspaces
from autockpt.measure import measure_peak


def compiled(model: Any, budget: float = 0.0) -> Any:
    return torch.compile(model, backend="autockpt", options={"lower": "eager", "memory_budget": budget})


def test_dropouts_mask_of_floats_is_counted() -> None:
    weight = torch.randn(64, 64, requires_grad=True)
    compiled(lambda x: F.dropout(x @ weight, 0.5).sum())(torch.randn(256, 64)).backward()
    problem = autockpt.decisions()[-1].decision.problem
    assert problem.workspace is not None
    found = [problem.workspace[v.name] for v in problem.graph.values if v.operator == "aten.native_dropout.default"]
    assert found == [256 * 64 * 4]


def test_inside_of_a_profiler_workspaces_are_the_same() -> None:
    def found() -> dict[str, int]:
        workspaces._known.clear()
        torch._dynamo.reset()
        compiled(model)(x).backward()
        return dict(autockpt.decisions()[-1].decision.problem.workspace or {})

    model, x = Allocating(), torch.randn(8, 64, 64)
    expected = found()
    with torch.profiler.profile(profile_memory=True):
        assert found() == expected
    assert len(expected) > 3


class Allocating(nn.Module):
    """Operators that copy their operands: another dtype, another layout, a mask as floats, unfolded images."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.convolution = nn.Conv1d(64, 64, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.dropout(self.norm(x.transpose(1, 2)), 0.3)
        x = self.convolution(x.transpose(1, 2)) * (x.transpose(1, 2) > 0)
        return torch.fft.rfft(x).abs().logsumexp(1).sum()


def test_operators_that_copy_their_operands_stay_inside_the_budget() -> None:
    model, x = Allocating(), torch.randn(64, 64, 64)
    for fraction in (0.0, 1.0):
        torch._dynamo.reset()
        step = compiled(model, fraction)
        step(x).backward()
        model.zero_grad(set_to_none=True)
        made = autockpt.decisions()[-1]
        measured = measure_peak(lambda step=step: step(x).backward(), x.device) + made.forecast.graph_input_bytes
        assert measured <= made.budget_bytes


def test_measuring_draws_no_numbers_of_the_users() -> None:
    weight = torch.randn(8, 8, requires_grad=True)

    def model(x: Tensor) -> Tensor:
        return F.dropout(x @ weight, 0.5).sum()

    workspaces._known.clear()
    x = torch.randn(4, 8)
    torch.manual_seed(5)
    expected = model(x)
    torch.manual_seed(5)
    assert torch.equal(compiled(model)(x), expected)


def test_elementwise_operators_of_one_dtype_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspaces, "_measure", lambda calls: pytest.fail(f"measured {[c.target for c in calls]}"))
    weight = torch.randn(32, 32, requires_grad=True)
    compiled(lambda x: torch.tanh(torch.sin(x @ weight) * 2.0).sum())(torch.randn(16, 32)).backward()
