"""The state of optimizers is predicted as torch allocates it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from autockpt.errors import OptionError
from autockpt.optimizers import OPTIMIZERS, check_optimizer, named_optimizer, named_state_bytes
from autockpt.options import Options
from autockpt.step.optimizers import OptimizerStates, predicted_bytes

CPU = torch.device("cpu")


def allocated(optimizer: torch.optim.Optimizer) -> int:
    tensors = [t for state in optimizer.state.values() for t in state.values() if isinstance(t, torch.Tensor)]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def stepped(name: str, model: nn.Module) -> torch.optim.Optimizer:
    optimizer_class, settings = named_optimizer(name)
    optimizer = optimizer_class(model.parameters(), **settings)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return optimizer


@pytest.mark.parametrize("name", OPTIMIZERS.split(", "))
def test_the_predicted_state_is_what_the_first_step_allocates(name: str) -> None:
    model = nn.Sequential(nn.Linear(24, 16), nn.LayerNorm(16), nn.Linear(16, 8, dtype=torch.bfloat16))
    expected = allocated(stepped(name, model))
    assert sum(named_state_bytes(name, p.shape, p.dtype) for p in model.parameters()) == expected
    optimizer_class, settings = named_optimizer(name)
    assert predicted_bytes(optimizer_class(model.parameters(), **settings), CPU) == expected


def test_an_announced_optimizer_counts_until_it_exists() -> None:
    model = nn.Linear(32, 32)
    states = OptimizerStates(CPU)
    for _ in range(2):
        states.announce("AdamW", model.parameters())
    predicted = 2 * sum(p.nbytes for p in model.parameters())
    assert predicted <= states.expected_bytes <= predicted + 16
    optimizer = torch.optim.SGD(model.parameters())
    states._add(optimizer, states.state_of(optimizer))
    assert states.expected_bytes == 0
    del model, optimizer
    assert states.expected_bytes == 0


def test_a_wrong_name_is_refused_with_the_list() -> None:
    with pytest.raises(OptionError, match=r"adafactor.*adamw.*sgd"):
        check_optimizer("AdamZ")
    with pytest.raises(
        OptionError, match=r"option optimizer='AdamZ' is not known; accepted is None or one of adadelta"
    ):
        Options(optimizer="AdamZ")
    assert Options(optimizer="SGD(momentum)").optimizer == "SGD(momentum)"
