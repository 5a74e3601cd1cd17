"""A training step of fake tensors: built by a factory, or copied from an existing model."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.utils._pytree import tree_leaves, tree_map_only

from autockpt.inductor.fake.job.group import FakeJob
from autockpt.inductor.fake.job.shapes import plain_tensors
from autockpt.inductor.fake.known_values import KnownValues, StepMode, line_of
from autockpt.inductor.fake.parts import (
    compiled_in,
    compiled_parts,
    copy_with_parts,
    modules_of,
    pipeline_stages,
    whole,
)
from autockpt.inductor.patches import module_conversion, rejection_sampling
from autockpt.inductor.torch_api import AutockptError

Factory = Callable[..., Any]


@dataclass(frozen=True)
class FakeStep:
    """A callable to compile and its inputs; all tensors are fake and on one device."""

    forward: Callable[..., Any]
    inputs: tuple[Any, ...]
    named_inputs: Mapping[str, Any] = field(default_factory=dict)
    mode: StepMode = field(default_factory=StepMode)

    parts: tuple[nn.Module, ...] = ()
    """Modules that are compiled one by one, where the whole is not compiled."""
    job: FakeJob | None = None
    """Where this is one rank of several: then parameters may be DTensors, of which it has a part."""
    stages: tuple[nn.Module, ...] = ()
    """Of a pipeline, where a function runs its schedule."""

    @property
    def modules(self) -> list[nn.Module]:
        return [*modules_of(self.forward), *self.stages]

    @property
    def parameters(self) -> list[nn.Parameter]:
        return list(dict.fromkeys(p for module in self.modules for p in module.parameters()))

    @property
    def state(self) -> list[torch.Tensor]:
        """Parameters and buffers."""
        modules = self.modules
        return list(chain.from_iterable(chain(module.parameters(), module.buffers()) for module in modules))

    @property
    def graph_input_bytes(self) -> tuple[int, int]:
        """Bytes of parameters and buffers, and bytes of inputs."""
        return _bytes(self.state), _bytes(self.input_tensors)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was assumed so far of values that the step reads from tensors."""
        return tuple(self.mode.assumptions)

    @property
    def gradient_bytes(self) -> int:
        """Of all parameters that are trained; those that this rank has."""
        return sum(one.numel() * one.itemsize for one in plain_tensors(p for p in self.parameters if p.requires_grad))

    @property
    def elements(self) -> int:
        """Of all parameters, as far as this rank has them."""
        return sum(one.numel() for one in plain_tensors(self.parameters))

    @property
    def input_tensors(self) -> tuple[torch.Tensor, ...]:
        leaves = tree_leaves((self.inputs, self.named_inputs))
        return tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))


def from_factory(
    factory: Factory, settings: Mapping[str, Any], device: torch.device, job: FakeJob | None = None
) -> FakeStep:
    """The step of the model (or function) and inputs that the factory returns, built under fake tensors."""
    mode = StepMode()
    with mode, KnownValues(), torch.device(device), module_conversion(_apply), rejection_sampling(_truncated_normal):
        try:
            made = factory(**settings)
        except DataDependentOutputException as error:
            raise AutockptError(_value_read(error)) from error
    forward, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, ())
    if not callable(forward) or not isinstance(inputs, tuple | list):
        raise AutockptError(
            "the factory must return a model and a tuple of its inputs, or a function without inputs, "
            f"but returned {_described(made)}"
        )
    if job is not None:
        return _of_job(forward, tuple(inputs), mode, job)
    return _faked(forward, tuple(inputs), {}, mode, device)


def _of_job(forward: Any, inputs: tuple[Any, ...], mode: StepMode, job: FakeJob) -> FakeStep:
    """As the factory made it: FSDP's states and DTensors cannot be copied. A function is not compiled as a whole, since
    it runs a schedule; the stages in it are."""
    forward = whole(forward)
    stages = [stage.module for stage in pipeline_stages()]
    parts = [*compiled_parts(forward), *(part for stage in stages for part in compiled_in(stage))]
    if not parts and not isinstance(forward, nn.Module):
        parts = stages or modules_of(forward)
    return FakeStep(forward, inputs, {}, mode, tuple(dict.fromkeys(parts)), job, tuple(stages))


def from_model(
    model: Callable[..., Any], inputs: tuple[Any, ...], named_inputs: Mapping[str, Any], device: torch.device
) -> FakeStep:
    """The step of a copy of the model with fake parameters and inputs of the same shapes and strides."""
    return _faked(model, inputs, named_inputs, StepMode(), device)


def _faked(
    forward: Any, inputs: tuple[Any, ...], named: Mapping[str, Any], mode: StepMode, device: torch.device
) -> FakeStep:
    made: dict[int, torch.Tensor] = {}

    def fake(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in made:
            made[id(tensor)] = _fake(tensor, mode, device)
        return made[id(tensor)]

    forward = whole(forward)
    parts = compiled_parts(forward)
    if isinstance(forward, nn.Module):
        known = {id(tensor): fake(tensor) for tensor in chain(forward.parameters(), forward.buffers())}
        forward, parts = copy_with_parts(forward, known, parts)
    inputs, named = tree_map_only(torch.Tensor, fake, (tuple(inputs), dict(named)))
    return FakeStep(forward, inputs, named, mode, tuple(parts))


def _fake(tensor: torch.Tensor, mode: StepMode, device: torch.device) -> torch.Tensor:
    with mode:
        strided = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device)
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(strided, requires_grad=tensor.requires_grad)
    return strided.requires_grad_(tensor.requires_grad)


def _apply(self: nn.Module, function: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> nn.Module:
    """`nn.Module._apply` for fake tensors: replaces parameters instead of their storage; tied ones stay tied."""
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


def _truncated_normal(tensor: torch.Tensor, mean: float, std: float, *_: Any, **__: Any) -> torch.Tensor:
    """`nn.init`'s draws again until no value is outside of the bounds, which a fake tensor cannot say."""
    with torch.no_grad():
        return tensor.normal_(mean, std)


def _value_read(error: DataDependentOutputException) -> str:
    """Where the factory asked a tensor for a value that nobody knows."""
    return (
        "while it is built, the model reads a value of a tensor that is random, large or computed from parameters, and "
        f"tensors have no memory in an analysis: {line_of(traceback.extract_tb(error.__traceback__))}"
    )


def _bytes(tensors: Any) -> int:
    storages = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in plain_tensors(tensors)}
    return sum(storages.values())


def _described(made: Any) -> str:
    return f"a {type(made).__name__}" + (f" of {len(made)}" if isinstance(made, tuple | list) else "")
