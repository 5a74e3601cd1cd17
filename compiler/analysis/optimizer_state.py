"""Bytes of state that an optimizer allocates: one step of torch's own optimizer on tensors without memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from autockpt.cost_models import shown
from autockpt.errors import OptionError


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
    optimizer_class, settings = _OPTIMIZERS[name.lower()]
    shown = " with ".join([getattr(optimizer_class, "__name__", name), *settings])
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    if not trained:
        return OptimizerState(shown, 0)
    if "foreach" in inspect.signature(optimizer_class).parameters:
        # The state is the same, and the kernels for lists of tensors need not support fake ones.
        settings = {**settings, "foreach": False}
    with mode:
        optimizer = optimizer_class(trained, lr=1e-3, **settings)
        for parameter in trained:
            parameter.grad = torch.empty_like(parameter)
        optimizer.step()
        for parameter in trained:
            parameter.grad = None
    state = [leaf for leaf in tree_leaves(dict(optimizer.state)) if isinstance(leaf, torch.Tensor)]
    return OptimizerState(shown, sum(tensor.untyped_storage().nbytes() for tensor in state))


# Optimizers that need one dense gradient for each parameter: no closures, no sparse gradients, not for matrices only.
def check_optimizer(name: str) -> None:
    """Raises OptionError where the name is none of ours; called before the model is built as well."""
    if name.lower() not in _OPTIMIZERS:
        raise OptionError(f"unknown optimizer {shown(name)}; accepted are {', '.join(sorted(_OPTIMIZERS))}")


_OPTIMIZERS: dict[str, tuple[Callable[..., torch.optim.Optimizer], dict[str, Any]]] = {
    name.lower(): (getattr(torch.optim, name), {})
    for name in ("Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop")
}
_OPTIMIZERS |= {
    "rprop": (torch.optim.Rprop, {}),
    "sgd": (torch.optim.SGD, {}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9}),
}
