"""Bytes that an optimizer keeps for its parameters: one step of torch's own, on tensors without memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from autockpt.errors import OptionError


@dataclass(frozen=True)
class OptimizerState:
    name: str
    state_bytes: int


def optimizer_state(
    name: str, parameters: Sequence[torch.nn.Parameter], mode: AbstractContextManager[Any]
) -> OptimizerState:
    """Of `torch.optim`'s optimizer of that name, whatever its case, with its defaults."""
    made = _OPTIMIZERS.get(name.lower())
    if made is None:
        raise OptionError(f"unknown optimizer {name!r}; accepted are {', '.join(sorted(_OPTIMIZERS))}")
    cls, settings = made
    shown = " with ".join([getattr(cls, "__name__", name), *settings])
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    if not trained:
        return OptimizerState(shown, 0)
    if "foreach" in inspect.signature(cls).parameters:
        # One parameter at a time: the state is the same, and no kernel for many is asked for.
        settings = {**settings, "foreach": False}
    with mode:
        optimizer = cls(trained, lr=1e-3, **settings)
        for parameter in trained:
            parameter.grad = torch.empty_like(parameter)
        optimizer.step()
        for parameter in trained:
            parameter.grad = None
    held = [leaf for leaf in tree_leaves(dict(optimizer.state)) if isinstance(leaf, torch.Tensor)]
    return OptimizerState(shown, sum(tensor.untyped_storage().nbytes() for tensor in held))


# Those that take one gradient a parameter: a closure, sparse gradients or matrices only is another question.
_OPTIMIZERS: dict[str, tuple[Callable[..., torch.optim.Optimizer], dict[str, Any]]] = {
    name.lower(): (getattr(torch.optim, name), {})
    for name in ("Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop")
}
_OPTIMIZERS |= {
    "rprop": (torch.optim.Rprop, {}),
    "sgd": (torch.optim.SGD, {}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9}),
}
