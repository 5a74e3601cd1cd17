"""Graphs of unusual forms are planned, not handed to torch's own partition: no warning, the same gradients."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import autockpt


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(x)))


@torch.compiler.nested_compile_region
def region(block: nn.Module, x: Tensor) -> Tensor:
    return block(x)


def nested(block: nn.Module, x: Tensor) -> Tensor:
    return region(block, x)


def routed(block: nn.Module, x: Tensor) -> Tensor:
    """A size that depends on data, by indices."""
    at = torch.nonzero(x.detach().sum(-1) > 0).squeeze(-1)
    return x.index_add(0, at, block(x[at]))


def masked(block: nn.Module, x: Tensor) -> Tensor:
    """The same by a mask, and the size itself in the arithmetic."""
    selected = x[x.detach().sum(-1) > 0]
    return x + block(selected).sum(0) + selected.shape[0]


def _recompute(*_: Any, **__: Any) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_RECOMPUTE


def tagged(block: nn.Module, x: Tensor) -> Tensor:
    """MUST_RECOMPUTE over a random operator."""
    contexts = functools.partial(create_selective_checkpoint_contexts, _recompute)
    return checkpoint(lambda y: F.dropout(block(y), 0.5), x, use_reentrant=False, context_fn=contexts)


class Stack(nn.Module):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = self.layer(block, x)
        return x.square().mean()


def gradients(model: nn.Module, forward: Any, x: Tensor) -> list[Tensor]:
    model.zero_grad()
    torch.manual_seed(7)
    forward(x).backward()
    return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]


def check(layer: Any, reference: str, **options: Any) -> autockpt.GraphDecision:
    model, x = Stack(layer), torch.randn(64, 32)
    captured = {"capture_dynamic_output_shape_ops": True, "capture_scalar_outputs": True}
    before = len(autockpt.decisions())
    with torch._dynamo.config.patch(captured), warnings.catch_warnings():
        warnings.filterwarnings("error", message="autockpt")
        compiled = torch.compile(model, backend="autockpt", options=options)
        got = gradients(model, compiled, x)
        made = autockpt.decisions()[before:]
        torch._dynamo.reset()
        expected = gradients(model, torch.compile(model, backend=reference), x)
    assert len(made) == 1
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)
    return made[0]


@pytest.mark.parametrize("budget", [0.0, 0.5])
@pytest.mark.parametrize("layer", [nested, routed, masked, tagged])
def test_it_is_planned_operator_by_operator(layer: Any, budget: float) -> None:
    check(layer, "aot_eager", lower="eager", memory_budget=budget)


@pytest.mark.inductor
@pytest.mark.parametrize("layer", [nested, routed, tagged])
def test_it_is_planned_in_code_that_inductor_generates(layer: Any) -> None:
    check(layer, "inductor", memory_budget=0.0)


def test_a_region_without_state_may_be_recomputed() -> None:
    model, x = Stack(nested), torch.randn(64, 32)
    gradients(model, torch.compile(model, backend="autockpt", options={"lower": "eager", "memory_budget": 0.0}), x)
    assert any(name.startswith("invoke_subgraph") for name in autockpt.decisions()[-1].to_json()["recomputed"])


def test_a_random_value_that_is_tagged_to_be_recomputed_is_saved_and_says_so() -> None:
    model, x = Stack(tagged), torch.randn(64, 32)
    compiled = torch.compile(model, backend="autockpt", options={"lower": "eager", "memory_budget": 0.0})
    gradients(model, compiled, x)
    reasons = autockpt.decisions()[-1].to_json()["must_save"].values()
    assert "random: would draw again; saved although it is tagged to be recomputed" in reasons
