"""Bytes of state that an optimizer allocates: one step of torch's own optimizer on tensors without memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from autockpt.inductor import plain_tensors
from autockpt.optimizers import check_optimizer, named_optimizer


@dataclass(frozen=True)
class OptimizerState:
    name: str
    """As the report shows it: `AdamW`, `SGD with momentum`."""
    state_bytes: int


def optimizer_state(
    name: str, parameters: Sequence[torch.nn.Parameter], mode: AbstractContextManager[Any]
) -> OptimizerState:
    """Of the `torch.optim` optimizer of that name, whatever its case, with its defaults.

    `parameters` are fake tensors, and `mode` is the fake tensor mode they were made in.
    """
    check_optimizer(name)
    optimizer_class, settings = named_optimizer(name)
    shown = " with ".join([getattr(optimizer_class, "__name__", name), *(one for one in settings if one != "foreach")])
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    if not trained:
        return OptimizerState(shown, 0)
    with mode:
        optimizer = optimizer_class(trained, lr=1e-3, **settings)
        for parameter in trained:
            parameter.grad = torch.empty_like(parameter)
        optimizer.step()
        for parameter in trained:
            parameter.grad = None
    state = plain_tensors(tree_leaves(dict(optimizer.state)))
    return OptimizerState(shown, sum(tensor.untyped_storage().nbytes() for tensor in state))
