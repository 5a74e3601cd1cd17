"""One pipeline: what an analysis says is what training runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import autockpt
from autockpt import Analysis, GraphDecision


class Layers(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + self.dropout(F.gelu(layer(x)))
        return x.square().mean()


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.two(F.relu(self.one(x))))).square().mean()


# Of one graph each. Several graphs are planned together, by `analyze` at once and in training after the first step.
MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "layers": (Layers, (512, 64)),
    "dropout": (lambda: Layers(dropout=0.1), (512, 64)),
    "convolutions": (Convolutions, (8, 3, 16, 16)),
}


def trained(model: nn.Module, x: Tensor, **options: Any) -> list[GraphDecision]:
    """The decisions of a real compilation of one step."""
    torch._dynamo.reset()
    before = len(autockpt.decisions())
    torch.compile(model, backend="autockpt", options={"device": "cpu", **options})(x).backward()
    return list(autockpt.decisions()[before:])


def analyzed(model: nn.Module, x: Tensor, **arguments: Any) -> Analysis:
    torch._dynamo.reset()
    return autockpt.analyze(model, x, device="cpu", **arguments)


def agree(made: list[GraphDecision], analysis: Analysis) -> None:
    assert len(made) == len(analysis.graphs)
    for one, other in zip(made, analysis.graphs, strict=True):
        decision = other.decision
        assert one.method == decision.candidate.method
        assert one.graph_plan == decision.plan
        assert one.outcome is decision.outcome
        assert (one.budget_bytes, one.peak_bytes) == (decision.budget_bytes, decision.candidate.peak_bytes)
        assert one.compiled_bytes == decision.compiled_bytes
        assert one.step_seconds == decision.candidate.seconds


@pytest.mark.inductor
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("budget", [0.3, "1GiB"])
def test_an_analysis_with_dry_runs_decides_as_compilation_does(name: str, budget: float | str) -> None:
    build, shape = MODELS[name]
    model, x = build(), torch.randn(shape)
    agree(trained(model, x, memory_budget=budget), analyzed(model, x, memory_budget=budget, lower=True))


def test_where_the_dry_run_fails_both_plan_with_the_wider_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("no code for this")

    monkeypatch.setattr(importlib.import_module("autockpt.inductor.joint"), "lower_for_dry_run", fail)
    model, x = Layers(), torch.randn(512, 64)
    analysis = analyzed(model, x, memory_budget=0.5, lower=True)
    assert "no code for this" in str(analysis.report["device"]["approximations"])
    (graph,) = analysis.graphs
    assert graph.decision.problem.margin == 0.015
    assert graph.decision.compiled_bytes is None


@pytest.mark.inductor
def test_a_plan_from_a_file_is_judged_alike(tmp_path: Path) -> None:
    model, x, path = Layers(), torch.randn(512, 64), tmp_path / "plan.json"
    trained(model, x, memory_budget=0.2)[0].plan.save(path)
    made = trained(model, x, memory_budget="1GiB", plan=str(path))
    agree(made, analyzed(model, x, memory_budget="1GiB", plan=str(path), lower=True))
    assert made[0].method == "from a file"


def test_without_dry_runs_the_forecast_decides_in_both() -> None:
    """Unfused there is nothing to generate: the same function, the same plan."""
    model, x = Layers(), torch.randn(512, 64)
    (made,) = trained(model, x, memory_budget="1GiB", closed_loop=False, lower="eager")
    assert made.compiled_bytes is None
    assert made.dry_run_count == 0
    assert made.outcome.name == "FASTEST"
