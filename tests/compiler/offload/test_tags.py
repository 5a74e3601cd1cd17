"""Tags of `torch.utils.checkpoint` that send tensors to the host: they win over the planner."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import autockpt
from autockpt.cost_models import load_profile
from autockpt.cost_models.profiles import profile_json
from autockpt.partition import GraphDecision

TAGS = [CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD]


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def device(tmp_path: Path) -> str:
    """A link that is slower than recomputing anything: the planner by itself would offload nothing."""
    slow = replace(load_profile("cpu"), device_to_host_bytes_per_second=1e6, host_to_device_bytes_per_second=1e6)
    path = tmp_path / "linked.json"
    path.write_text(profile_json(slow))
    return str(path)


class Tagged(nn.Module):
    """Two layers in a checkpointed region whose matmuls have a tag."""

    def __init__(self, tag: CheckpointPolicy) -> None:
        super().__init__()
        self.up, self.down, self.head = nn.Linear(32, 64), nn.Linear(64, 32), nn.Linear(32, 8)
        self.contexts = partial(create_selective_checkpoint_contexts, partial(_policy, tag))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = checkpoint(self._layers, x, use_reentrant=False, context_fn=self.contexts)
        return self.head(x).square().mean()

    def _layers(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.up(x).relu()).relu()


def _policy(tag: CheckpointPolicy, _: Any, operator: Any, *__: Any, **___: Any) -> CheckpointPolicy:
    return tag if operator is torch.ops.aten.addmm.default else CheckpointPolicy.PREFER_RECOMPUTE


def gradients(model: Tagged, x: torch.Tensor, **options: Any) -> list[torch.Tensor]:
    torch._dynamo.reset()
    model.zero_grad()
    step = torch.compile(model, backend="autockpt", options=options)
    step(x).backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def made() -> GraphDecision:
    return autockpt.decisions()[-1]


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("budget", [0.5, 1.0])
def test_a_tagged_value_waits_on_the_host_at_any_budget(tag: CheckpointPolicy, budget: float, device: str) -> None:
    model, x = Tagged(tag), torch.randn(64, 32)
    expected = gradients(model, x, memory_budget=1.0, lower="eager")
    found = gradients(model, x, memory_budget=budget, device=device, offload=True, lower="eager")
    graph = made().decision.problem.graph
    assert {graph.by_name[name].operator for name in made().graph_plan.on_host} == {"aten.addmm.default"}
    assert not made().decision.tags_not_followed
    assert made().exposed_seconds > 0
    assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))


def test_a_tag_says_nothing_where_offloading_is_off(device: str) -> None:
    model, x = Tagged(CheckpointPolicy.MUST_CPU_OFFLOAD), torch.randn(64, 32)
    gradients(model, x, memory_budget=0.5, device=device, lower="eager")
    assert not made().graph_plan.offloaded
    assert not made().decision.problem.tagged_offload


def test_tagged_values_beyond_the_host_memory_stay_on_the_device_and_are_named(device: str) -> None:
    model, x = Tagged(CheckpointPolicy.MUST_CPU_OFFLOAD), torch.randn(64, 32)
    gradients(model, x, memory_budget=1.0, device=device, offload="8KiB", lower="eager")
    decision = made().decision
    assert decision.candidate.host_bytes <= 8 * 2**10
    assert decision.tags_not_followed
    assert set(decision.tags_not_followed) <= decision.plan.saved


@pytest.mark.inductor
def test_torchs_own_partition_which_knows_no_tags_does_not_run(device: str) -> None:
    model, x = Tagged(CheckpointPolicy.MUST_CPU_OFFLOAD), torch.randn(64, 32)
    expected = gradients(model, x, memory_budget=1.0)
    found = gradients(model, x, memory_budget=1.0, device=device, offload=True)
    assert made().graph_plan.offloaded
    assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))
