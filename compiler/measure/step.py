"""Load a training step from a script: `SCRIPT.py:FACTORY`, where the factory returns a model and its inputs."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from autockpt.cost_models.memory import memory_of
from autockpt.errors import AutockptError
from autockpt.machine import device_available

_NUMBER = count()


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
    place = None if device is None else _device(device)
    factory = load_factory(target)
    torch.manual_seed(seed)
    model, inputs = factory(**(settings or {}))
    if place is not None:
        model, inputs = model.to(place), tree_map_only(torch.Tensor, lambda tensor: tensor.to(place), tuple(inputs))
    forward = model if backend is None else torch.compile(model, backend=backend, **compile_options)
    return Training(model, tuple(inputs), forward)


def _device(device: str) -> torch.device:
    try:
        place = torch.device(device)
    except RuntimeError as error:
        raise AutockptError(f"{device!r} is not a device of torch: {error}") from None
    if not device_available(place):
        raise AutockptError(f"there is no device {device!r} here: torch.cuda.is_available() is False")
    return place


def load_factory(target: str) -> Callable[..., Any]:
    """The function that `SCRIPT.py:FACTORY` names. Runs the script as a new module, its folder on `sys.path`."""
    path, _, name = target.rpartition(":")
    if not path:
        raise AutockptError(f"{target!r} is not SCRIPT.py:FACTORY")
    if not Path(path).is_file():
        raise AutockptError(f"{target!r} is not SCRIPT.py:FACTORY with a script that exists: there is no file {path}")
    module_name = f"autockpt_script_{next(_NUMBER)}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise AutockptError(f"{path} is not a Python script")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        with _on_path(str(Path(path).parent)):
            spec.loader.exec_module(module)
    except Exception as error:
        raise AutockptError(f"{path} does not run: {type(error).__name__}: {error}") from error
    factory: Callable[..., Any] | None = getattr(module, name, None)
    if not callable(factory):
        raise AutockptError(f"{path} has no function {name!r}")
    return factory


@contextmanager
def _on_path(folder: str) -> Iterator[None]:
    """`folder` as the first entry of `sys.path`. A script may insert entries of its own, which stay, or remove ours."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
