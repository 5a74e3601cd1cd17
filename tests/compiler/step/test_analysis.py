"""What an analysis says of a step with a graph break is what training does, from the second step on."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import autockpt
from autockpt.machine import live_bytes

WIDTH, CPU = 64, torch.device("cpu")


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + F.gelu(layer(x))
        return x


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = Layers(), Layers()

    def forward(self, x: Tensor) -> Tensor:
        x = self.one(x)
        torch._dynamo.graph_break()
        return self.two(x).square().mean()


@pytest.mark.inductor
@pytest.mark.parametrize("budget", [0.3, 2300 * 2**10])
def test_training_runs_the_plans_and_has_the_forecast_of_the_analysis(budget: float | int) -> None:
    """By forecasts alone in both, on the same operators: without Inductor's decompositions the graphs are others."""
    torch._dynamo.reset()
    model, x = Broken(), torch.randn(1024, WIDTH)
    analysis = autockpt.analyze(model, x, device="cpu", memory_budget=budget)
    gc.collect()
    own = x.nbytes + sum(parameter.nbytes for parameter in model.parameters())
    others = (
        live_bytes(CPU).now() - own
    )  # what other tests left: training counts it, and the analysis knows nothing of it
    within = budget if isinstance(budget, float) else budget + others
    options = {"device": "cpu", "memory_budget": within, "closed_loop": False}
    compiled = torch.compile(model, backend="autockpt", options=options)
    for _ in range(2):
        model.zero_grad(set_to_none=True)
        compiled(x).backward()

    step = autockpt.step_decision()
    assert step is not None
    made = {decision.name: decision for decision in autockpt.decisions()}
    trained = [made[call.graph] for call in step.calls]
    assert [one.graph_plan for one in trained] == [graph.decision.plan for graph in analysis.graphs]
    assert [one.method for one in trained] == [graph.decision.candidate.method for graph in analysis.graphs]
    assert any(one.recompute_seconds for one in trained), "a plan that recomputes nothing shows little"
    assert step.step_seconds == pytest.approx(analysis.report["step_seconds"])
    assert step.peak_bytes - others == analysis.peak_bytes
    assert step.budget_bytes - others == analysis.report["budget_bytes"]
