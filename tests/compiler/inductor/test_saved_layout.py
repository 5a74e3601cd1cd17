"""Saving a value changes no reduction: gradients stay bitwise those of plain Inductor where images are saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F
from torch.utils._ordered_set import OrderedSet

import autockpt
from autockpt.inductor import plain_inductor
from autockpt.inductor.saved_layout import with_saved_images

IMAGE = (2, 8, 5, 5)


class Residual(nn.Module):
    """Two convolutions with batch norms, a shortcut, a mean and a cross-entropy, as in a ResNet."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(c, 16, 3, padding=1, bias=False) for c in (4, 16))
        self.one, self.two = nn.BatchNorm2d(16), nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 20)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        x = F.relu(self.one(self.first(images)))
        x = F.relu(x + self.two(self.second(x)))
        return F.cross_entropy(self.head(x.mean((2, 3))), labels)


@pytest.mark.inductor
def test_saving_everything_leaves_the_gradients_of_a_residual_network_bitwise_equal() -> None:
    plain = _results(plain_inductor)
    saving_all = _results("autockpt", options={"memory_budget": "1GiB", "planner": "save_everything"})

    # The ReLU after the last convolution, and no constant of the cross-entropy.
    saved = autockpt.decisions()[-1].plan.graphs[0].plan.saved
    assert "relu_1" in saved
    assert not any(name.startswith("full") for name in saved)
    assert all(map(torch.equal, saving_all, plain))


def test_pointwise_results_after_the_last_convolution_are_images() -> None:
    assert _saved(lambda x: (x.relu(), x.relu().mean((2, 3)))) == {"relu"}


def test_a_residual_of_a_permuted_linear_layer_is_an_image() -> None:
    def residual(x: Tensor) -> tuple[Tensor, Tensor]:
        total = x + torch.full((2, 5, 5, 8), 0.5).permute(0, 3, 1, 2)
        return total, total.mean((2, 3))

    assert _saved(residual) == {"add"}


@pytest.mark.parametrize(
    "tail",
    [
        lambda x: (x.relu() + torch.ones(IMAGE),),
        lambda x: ((relu := x.relu()), relu.view(2, 200) @ torch.ones(200, 3)),
        lambda x: (x.flatten(2).softmax(-1).view(2, 8, 5, 5) * 2,),
    ],
    ids=["other layout", "read by a view", "no longer an image"],
)
def test_other_values_keep_the_strides_of_tracing(tail: Callable[[Tensor], tuple[Tensor, ...]]) -> None:
    assert _saved(tail) == set()


def _saved(tail: Callable[[Tensor], tuple[Tensor, ...]]) -> set[str]:
    """Names of the values that are written channels-last beside those that Inductor chooses: the convolution alone."""

    def network(image: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
        return tail(F.conv2d(image, weight, padding=1))

    with FakeTensorMode():
        module = make_fx(network)(torch.empty(IMAGE), torch.empty(8, 8, 3, 3))
    (convolution,) = module.graph.find_nodes(op="call_function", target=torch.ops.aten.convolution.default)
    lowering = torch.fx.Interpreter(module)
    chosen = with_saved_images(lambda _: OrderedSet([convolution]))(lowering)
    return {node.name for node in chosen} - {convolution.name}


def _results(backend: Any, **options: Any) -> list[Tensor]:
    torch.manual_seed(0)
    model, images, labels = Residual(), torch.randn(16, 4, 9, 9), torch.randint(0, 20, (16,))
    loss = torch.compile(model, backend=backend, **options)(images, labels)
    loss.backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return [loss.detach(), *gradients]
