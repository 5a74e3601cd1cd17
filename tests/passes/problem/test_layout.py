"""Which weights and images are copied for convolutions that run channels-last."""

from __future__ import annotations

from dataclasses import replace

import pytest
from graphs import joint, value

from autockpt.cost_models import TensorSpec
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.value import Kind, Role
from autockpt.passes.problem.layout import copied_bytes
from autockpt.passes.problem.plan import Lowering


def convolved(device: str, image: tuple[int, ...], weight: tuple[int, ...]) -> JointGraph:
    """One convolution of an input by a parameter."""
    x = replace(value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT), spec=TensorSpec(image, "float32", 4))
    w = replace(value("w", role=Role.PARAMETER, kind=Kind.GRAPH_INPUT), spec=TensorSpec(weight, "float32", 4))
    y = value("y", "x", "w", operator="aten.convolution.default")
    return joint([replace(one, device=device) for one in (x, w, y)], ["y"], [])


IMAGE, WEIGHT = (16, 128, 64, 64), (128, 128, 3, 3)
BOTH = 4 * (16 * 128 * 64 * 64 + 128 * 128 * 9)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_wide_convolutions_have_their_image_and_weight_copied(device: str) -> None:
    assert copied_bytes(convolved(device, IMAGE, WEIGHT), Lowering.INDUCTOR) == BOTH
    assert copied_bytes(convolved(device, IMAGE, WEIGHT), Lowering.EAGER) == 0


@pytest.mark.parametrize(
    ("image", "weight"),
    [
        pytest.param((16, 64, 64, 64), (64, 64, 3, 3), id="few channels"),
        pytest.param((16, 128, 64, 64), (128, 32, 3, 3), id="groups of more than one channel"),
        pytest.param((16, 256, 64, 64), (128, 256, 3, 3), id="half as many channels out"),
    ],
)
def test_a_gpu_leaves_as_they_are_what_inductor_found_slower(image: tuple[int, ...], weight: tuple[int, ...]) -> None:
    assert copied_bytes(convolved("cuda", image, weight), Lowering.INDUCTOR) == 0
    assert copied_bytes(convolved("cpu", image, weight), Lowering.INDUCTOR) > 0


def test_a_gpu_copies_for_groups_of_one_channel() -> None:
    assert copied_bytes(convolved("cuda", IMAGE, (128, 1, 3, 3)), Lowering.INDUCTOR) > 0
