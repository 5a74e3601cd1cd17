"""Optimizers of torch by name, and the bytes of state that their first step allocates."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import torch

from autockpt.cost_models import shown
from autockpt.errors import OptionError

_SETTINGS_OF_KERNELS = ("foreach", "fused", "capturable", "differentiable")
"""They change how an optimizer computes and not what it stores; some need real tensors."""

# Optimizers that need one dense gradient for each parameter: no closures, no sparse gradients, not for matrices only.
_OPTIMIZERS: dict[str, tuple[Callable[..., torch.optim.Optimizer], dict[str, Any]]] = {
    name.lower(): (getattr(torch.optim, name), {})
    for name in ("Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop")
}
_OPTIMIZERS |= {
    "rprop": (torch.optim.Rprop, {}),
    "sgd": (torch.optim.SGD, {}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9}),
    "sgd(momentum)": (torch.optim.SGD, {"momentum": 0.9}),
}
OPTIMIZERS = ", ".join(sorted(_OPTIMIZERS))


def check_optimizer(name: str) -> None:
    """Raises OptionError where the name is none of these, whatever its case."""
    if name.lower() not in _OPTIMIZERS:
        raise OptionError(f"unknown optimizer {shown(name)}; accepted are {OPTIMIZERS}")


def named_optimizer(name: str) -> tuple[Callable[..., torch.optim.Optimizer], dict[str, Any]]:
    """Class and settings of a name that was checked. Lists of tensors are left out: the state is the same."""
    optimizer_class, settings = _OPTIMIZERS[name.lower()]
    if "foreach" in inspect.signature(optimizer_class).parameters:
        return optimizer_class, {**settings, "foreach": False}
    return optimizer_class, dict(settings)


@cache
def named_state_bytes(name: str, shape: torch.Size, dtype: torch.dtype) -> int:
    """Of one parameter, after the first step of an optimizer of this name with its defaults."""
    optimizer_class, settings = named_optimizer(name)
    return state_bytes(optimizer_class, settings, shape, dtype)


def state_bytes(
    optimizer_class: Callable[..., torch.optim.Optimizer],
    settings: Mapping[str, Any],
    shape: torch.Size,
    dtype: torch.dtype,
) -> int:
    """Of one parameter, after the first step; 0 where it cannot be said. That step runs on tensors without memory."""
    kept = {name: value for name, value in settings.items() if name not in ("params", *_SETTINGS_OF_KERNELS)}
    kept |= {"foreach": False} if "foreach" in settings else {}
    parameter = torch.nn.Parameter(torch.empty(shape, dtype=dtype, device="meta"))
    parameter.grad = torch.empty_like(parameter)
    try:
        optimizer = optimizer_class([{**kept, "params": [parameter]}])
    except Exception:
        return 0
    # Some read a value when they compute (Adafactor, ASGD). By then they have made their state.
    with suppress(Exception):
        optimizer.step()
    tensors = (t for state in optimizer.state.values() for t in state.values() if isinstance(t, torch.Tensor))
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
