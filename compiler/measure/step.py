"""Load a training step from a script: `SCRIPT.py:FACTORY`, where the factory returns a model and its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from autockpt.cost_models.memory import memory_of
from autockpt.errors import AutockptError
from autockpt.machine import device_available
from autockpt.measure.factory import call_factory, check_settings, load_factory


@dataclass(frozen=True)
class Training:
    """A model, its inputs and its compiled forward; one step computes a loss and all gradients."""

    model: torch.nn.Module
    inputs: tuple[Any, ...]
    forward: Callable[..., Any]

    def step(self) -> torch.Tensor:
        self.model.zero_grad(set_to_none=True)
        output: torch.Tensor = self.forward(*self.inputs)
        loss = output if output.ndim == 0 else output.float().pow(2).mean()
        torch.autograd.backward(loss)
        return loss.detach()

    @property
    def graph_input_bytes(self) -> int:
        """Bytes of parameters, buffers and inputs, as the device's allocator rounds them; live all through the step."""
        tensors = [*self.model.parameters(), *self.model.buffers(), *self.inputs]
        memory = memory_of(tensors, threads=1)
        storages = {t.untyped_storage()._cdata: t.untyped_storage() for t in tensors if isinstance(t, torch.Tensor)}
        return sum(memory.allocated_bytes(storage.nbytes()) for storage in storages.values())

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device


def load_training(
    target: str,
    backend: Any = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    device: str | None = None,
    **compile_options: Any,
) -> Training:
    """Run the script, call its factory with these settings, move the result to `device`, compile it with `backend`.

    The script runs again in every call, so that every training has code objects of its own: Dynamo caches compiled code
    by code object, and would count all candidates against one recompilation limit.
    """
    place = None if device is None else check_device(device)
    factory = load_factory(target)
    check_settings(factory, settings or {}, target)
    torch.manual_seed(seed)
    made = call_factory(factory, target, **(settings or {}))
    if not isinstance(made, tuple) or len(made) != 2:
        raise AutockptError(f"{target} must return a model and a tuple of its inputs")
    model, inputs = made
    if place is not None:
        model, inputs = model.to(place), tree_map_only(torch.Tensor, lambda tensor: tensor.to(place), tuple(inputs))
    forward = model if backend is None else torch.compile(model, backend=backend, **compile_options)
    return Training(model, tuple(inputs), forward)


def check_device(device: str) -> torch.device:
    """The device of that name; raises AutockptError where there is none here."""
    try:
        place = torch.device(device)
    except RuntimeError:
        raise AutockptError(f"{device!r} is not a device of torch; cpu and cuda:0 are") from None
    if not device_available(place):
        raise AutockptError(f"there is no device {device!r} here: torch.cuda.is_available() is False")
    return place
