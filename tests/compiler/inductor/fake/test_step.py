"""A fake step has the shapes, strides, dtypes, ties and devices of the real one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensor

from autockpt.errors import AutockptError
from autockpt.inductor.fake.step import from_factory, from_model

CPU = torch.device("cpu")


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(100, 16)
        self.head = nn.Linear(16, 100, bias=False)
        self.head.weight = self.token.weight
        self.register_buffer("scale", torch.ones(3))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.token(tokens)) * self.scale[0]


def test_tied_parameters_stay_tied_and_are_counted_once() -> None:
    step = from_model(Tied(), (torch.zeros(2, 5, dtype=torch.long),), {}, CPU)
    assert step.forward.head.weight is step.forward.token.weight  # type: ignore[attr-defined]  # a copy of Tied
    assert len(step.parameters) == 1
    assert step.graph_input_bytes == (100 * 16 * 4 + 3 * 4, 2 * 5 * 8)


def test_everything_is_fake_and_the_original_is_not() -> None:
    model = Tied()
    step = from_model(model, (torch.zeros(2, 5, dtype=torch.long),), {"flag": True}, CPU)
    assert all(isinstance(parameter, FakeTensor) for parameter in step.parameters)
    assert isinstance(step.inputs[0], FakeTensor)
    assert step.named_inputs == {"flag": True}
    assert not any(isinstance(parameter, FakeTensor) for parameter in model.parameters())


def test_strides_and_frozen_parameters_are_kept() -> None:
    model = nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last)
    model.bias.requires_grad_(False)  # type: ignore[union-attr]  # it has one
    image = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    step = from_model(model, (image,), {}, CPU)
    assert step.inputs[0].stride() == image.stride()
    weight, bias = step.parameters
    assert weight.stride() == model.weight.stride()
    assert (weight.requires_grad, bias.requires_grad) == (True, False)


@pytest.mark.parametrize("convert", ["bfloat16", "half", "double"])
def test_a_factory_may_convert_what_it_built(convert: str) -> None:
    def factory(width: int) -> tuple[nn.Module, tuple[Tensor]]:
        return getattr(Tied(), convert)(), (torch.zeros(width, 5, dtype=torch.long),)

    step = from_factory(factory, {"width": 7}, CPU)
    assert {parameter.dtype for parameter in step.parameters} == {getattr(torch, convert)}
    assert len(step.parameters) == 1
    assert step.inputs[0].shape == (7, 5)


def test_an_error_says_what_a_factory_must_return() -> None:
    with pytest.raises(AutockptError, match=r"a model and a tuple of its inputs.*returned a tuple of 3"):
        from_factory(lambda: (Tied(), 1, 2), {}, CPU)
