"""A training step of tensors without memory: built by a factory, or copied from a model that exists."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map_only

from autockpt.errors import AutockptError

Factory = Callable[..., Any]


@dataclass(frozen=True)
class FakeStep:
    """What is compiled and called, every tensor of it fake and on one device."""

    forward: Callable[..., Any]
    inputs: tuple[Any, ...]
    named_inputs: Mapping[str, Any] = field(default_factory=dict)
    mode: FakeTensorMode = field(default_factory=FakeTensorMode)

    @property
    def parameters(self) -> list[nn.Parameter]:
        return list(self.forward.parameters()) if isinstance(self.forward, nn.Module) else []

    @property
    def graph_input_bytes(self) -> tuple[int, int]:
        """Of parameters and buffers, and of inputs."""
        model = self.forward
        own = chain(model.parameters(), model.buffers()) if isinstance(model, nn.Module) else ()
        inputs = [leaf for leaf in tree_leaves((self.inputs, self.named_inputs)) if isinstance(leaf, torch.Tensor)]
        return _bytes(own), _bytes(inputs)


def from_factory(factory: Factory, settings: Mapping[str, Any], device: torch.device) -> FakeStep:
    """What the factory returns: a model, or a function, and its inputs; built without memory."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode, torch.device(device), patch.object(nn.Module, "_apply", _apply):
        made = factory(**settings)
    forward, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, ())
    if not callable(forward) or not isinstance(inputs, tuple | list):
        raise AutockptError(
            "the factory must return a model and a tuple of its inputs, or a function of none, "
            f"and returned {_described(made)}"
        )
    return _moved(forward, tuple(inputs), {}, mode, device)


def from_model(
    model: Callable[..., Any], inputs: tuple[Any, ...], named_inputs: Mapping[str, Any], device: torch.device
) -> FakeStep:
    """A copy that has the shapes of the model and of its inputs, and nothing else."""
    return _moved(model, inputs, named_inputs, FakeTensorMode(allow_non_fake_inputs=True), device)


def _moved(
    forward: Any, inputs: tuple[Any, ...], named: Mapping[str, Any], mode: FakeTensorMode, device: torch.device
) -> FakeStep:
    made: dict[int, torch.Tensor] = {}

    def fake(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in made:
            made[id(tensor)] = _fake(tensor, mode, device)
        return made[id(tensor)]

    if isinstance(forward, nn.Module):
        known = {id(tensor): fake(tensor) for tensor in chain(forward.parameters(), forward.buffers())}
        forward = copy.deepcopy(forward, dict(known))
    inputs, named = tree_map_only(torch.Tensor, fake, (tuple(inputs), dict(named)))
    return FakeStep(forward, inputs, named, mode)


def _fake(tensor: torch.Tensor, mode: FakeTensorMode, device: torch.device) -> torch.Tensor:
    with mode:
        strided = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device)
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(strided, requires_grad=tensor.requires_grad)
    return strided.requires_grad_(tensor.requires_grad)


def _apply(self: nn.Module, function: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> nn.Module:
    """`Module.to` and the like: torch's own swaps the insides of tensors, which fake ones do not let it do."""
    done: dict[int, torch.Tensor] = {}
    for module in self.modules() if recurse else [self]:
        for name, parameter in module._parameters.items():
            if parameter is not None:
                if id(parameter) not in done:
                    with torch.no_grad():
                        done[id(parameter)] = nn.Parameter(function(parameter), parameter.requires_grad)
                module._parameters[name] = done[id(parameter)]  # type: ignore[assignment]  # it is a parameter
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = function(buffer)
    return self


def _bytes(tensors: Any) -> int:
    storages = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors}
    return sum(storages.values())


def _described(made: Any) -> str:
    return f"a {type(made).__name__}" + (f" of {len(made)}" if isinstance(made, tuple | list) else "")
