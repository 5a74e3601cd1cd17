"""What a random number costs decides whether a dropout mask is saved or drawn again."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from autockpt.cost_models import load_profile
from autockpt.inductor.capture import capture_joints
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.planners.decide import Decision, decide
from autockpt.passes.problem.plan import Budget, Setup


@pytest.fixture(scope="module")
def graph() -> JointGraph:
    """Blocks of matmul, dropout and GELU, as Inductor hands them to a partitioner."""
    torch._dynamo.reset()
    blocks = [nn.Sequential(nn.Linear(256, 256), nn.Dropout(0.1), nn.GELU()) for _ in range(4)]
    (captured,) = capture_joints(nn.Sequential(*blocks, nn.Linear(256, 1)), (torch.randn(512, 256),))
    return captured.graph


def decided(graph: JointGraph, device: str, fraction: float) -> Decision:
    return decide(graph, Setup(Budget(fraction=fraction), load_profile(device), threads=2))


def drawn_again(decision: Decision) -> int:
    values = decision.problem.graph.by_name
    return sum(values[name].operator.startswith("prims.inductor_random") for name in decision.plan.backward)


@pytest.mark.parametrize("fraction", [0.3, 0.6, 1.0])
def test_where_random_numbers_are_dear_no_mask_is_drawn_again(graph: JointGraph, fraction: float) -> None:
    assert drawn_again(decided(graph, "cpu", fraction)) == 0


def test_where_they_are_nearly_free_masks_are_drawn_again(graph: JointGraph) -> None:
    assert drawn_again(decided(graph, "a100-80gb", 0.3)) > 0


def test_drawing_a_mask_again_costs_more_than_a_matmul_on_the_cpu(graph: JointGraph) -> None:
    seconds = decided(graph, "cpu", 1.0).problem.seconds
    values = graph.by_name
    draws = [seconds[name] for name in values if values[name].operator.startswith("prims.inductor_random")]
    matmuls = [seconds[name] for name in values if values[name].operator.startswith("aten.addmm")]
    assert min(draws) > max(matmuls)
