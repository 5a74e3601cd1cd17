"""Modules of plans that recompute a value more than once: every write of the forward is in them."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from math import inf

import pytest
import torch
from torch import Tensor, nn

import autockpt
from autockpt.cost_models import load_profile
from autockpt.inductor.capture import capture_joints
from autockpt.inductor.joint import split
from autockpt.passes.fx.split import verify_modules
from autockpt.passes.generators.evictions import Evictions
from autockpt.passes.planners.decide import pose
from autockpt.passes.planners.frontier import Frontier
from autockpt.passes.problem.plan import Budget, Setup


def tower() -> nn.Module:
    blocks = [nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()) for _ in range(4)]
    return nn.Sequential(*blocks, nn.Flatten(), nn.Linear(8 * 256, 1))


def writes(module: torch.fx.GraphModule) -> int:
    return sum(node.target is torch.ops.aten.copy_.default for node in module.graph.nodes)


def test_batch_statistics_are_written_in_every_plan_of_a_descent() -> None:
    torch._dynamo.reset()
    (captured,) = capture_joints(tower(), [torch.randn(4, 8, 16, 16)])
    graph = captured.graph
    frontier = Frontier(pose(graph, Setup(Budget(fraction=0.0), load_profile("cpu"))))
    descents = Evictions(frontier.space).descents
    for descent in descents:
        descent.within(0, inf)
    plans = [candidate.plan for descent in descents for candidate in descent.candidates]
    twice = [plan for plan in plans if len(set(plan.backward)) < len(plan.backward)]
    assert twice
    assert writes(captured.module) >= 8
    for plan in twice[::4]:
        forward, backward = split(captured.module, plan, captured.forward_outputs, captured.parameters)
        verify_modules(captured.module, plan, forward, backward)
        assert writes(forward) == writes(captured.module)


@pytest.mark.inductor
def test_a_step_that_recomputes_values_twice_has_equal_gradients_and_statistics() -> None:
    plain, planned = (copy.deepcopy(model) for model in [tower()] * 2)
    x = torch.randn(4, 8, 16, 16)
    torch.compile(plain, backend="inductor")(x).sum().backward()
    torch.compile(planned, backend="autockpt", options={"memory_budget": 0.0})(x).sum().backward()
    plan = autockpt.decisions()[-1].decision.plan
    assert len(set(plan.backward)) < len(plan.backward) or not plan.saved.isdisjoint(plan.backward)
    for one, other in zip(plain.buffers(), planned.buffers(), strict=True):
        assert torch.equal(one, other)
    for one, other in zip(plain.parameters(), planned.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-5, atol=1e-6)


def group_norm(x: Tensor, weight: Tensor) -> Tensor:
    y = nn.functional.group_norm(x @ weight, 4)
    return (torch.where(y > 0, y, 0.1 * y) * y).sum()


def top(x: Tensor, weight: Tensor) -> Tensor:
    values, _ = torch.sigmoid(x @ weight).topk(32)
    return ((values * values) @ weight[:32]).sum()


@pytest.mark.parametrize("model", [group_norm, top])
@pytest.mark.parametrize("budget", [0.0, 0.2, 0.4, 0.9])
def test_operations_with_several_results_are_planned(model: Callable[..., Tensor], budget: float) -> None:
    weight = torch.randn(64, 64, requires_grad=True)
    x = torch.randn(64, 64)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="autockpt")
        options = {"memory_budget": budget, "lower": "eager"}
        torch.compile(model, backend="autockpt", options=options)(x, weight).backward()
    eager = weight.detach().clone().requires_grad_()
    model(x, eager).backward()
    torch.testing.assert_close(weight.grad, eager.grad)


def with_dropout() -> nn.Module:
    return nn.Sequential(nn.Linear(8 * 256, 64), nn.GELU(), nn.Dropout(0.1), nn.LayerNorm(64), nn.Linear(64, 1))


@pytest.mark.parametrize("make", [tower, with_dropout])
def test_what_torch_saves_is_known_without_its_modules(make: Callable[[], nn.Module]) -> None:
    torch._dynamo.reset()
    x = torch.randn(4, 8, 16, 16) if make is tower else torch.randn(4, 8 * 256)
    (captured,) = capture_joints(make(), [x])
    saved = captured.torch_saved
    assert "torch_own" not in vars(captured)
    assert saved
    assert saved == captured.torch_own.saved
    assert captured.copy().torch_saved == saved
