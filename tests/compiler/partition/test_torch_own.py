"""Where memory is not short, what runs is what Inductor would run."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import autockpt
from autockpt.passes.forecast.candidate import TORCH_PARTITION
from autockpt.passes.problem.plan import Outcome


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))


def gradients(net: nn.Module, backend: object, **options: object) -> list[torch.Tensor]:
    torch._dynamo.reset()
    compiled = torch.compile(net, backend=backend, options=options or None)  # type: ignore[arg-type]
    torch.manual_seed(1)
    compiled(torch.randn(256, 16)).mean().backward()
    return [parameter.grad for parameter in net.parameters() if parameter.grad is not None]


@pytest.mark.inductor
def test_a_budget_with_slack_runs_torchs_own_partition() -> None:
    expected = gradients(model(), "inductor")
    found = gradients(model(), "autockpt", memory_budget="1GiB")
    made = autockpt.decisions()[-1]
    assert made.method == TORCH_PARTITION
    assert made.outcome is Outcome.FASTEST
    assert made.compiled_bytes is not None
    assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))


@pytest.mark.inductor
def test_a_budget_below_it_runs_a_plan_of_ours() -> None:
    gradients(model(), "autockpt", memory_budget="1GiB")
    own = autockpt.decisions()[-1]
    gradients(model(), "autockpt", memory_budget=(own.compiled_bytes or 0) - 4096)
    made = autockpt.decisions()[-1]
    assert made.method != TORCH_PARTITION
    assert (made.compiled_bytes or 0) <= made.budget_bytes < (own.compiled_bytes or 0)
