"""A training step from a script: `SCRIPT.py:FACTORY`, where the factory returns a model and its example inputs."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import torch

from autockpt.errors import AutockptError

_NUMBER = count()


@dataclass(frozen=True)
class Training:
    """A model, its inputs and the step that makes its gradients."""

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
    def given_bytes(self) -> int:
        """Parameters, buffers and inputs, which live through the whole step."""
        tensors = [*self.model.parameters(), *self.model.buffers(), *self.inputs]
        storages = {t.untyped_storage()._cdata: t.untyped_storage() for t in tensors if isinstance(t, torch.Tensor)}
        return sum(storage.nbytes() for storage in storages.values())

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device


def load_training(
    target: str, backend: Any = None, seed: int = 0, layers: int | None = None, **compile_options: Any
) -> Training:
    """Run the script anew and compile what its factory returns; `layers` is for factories that take it.

    Every call gives classes and code of its own: Dynamo keeps compiled code by code object, and would otherwise
    count every candidate against the same recompilation limit.
    """
    factory = _factory(target)
    torch.manual_seed(seed)
    model, inputs = factory() if layers is None else factory(layers=layers)
    forward = model if backend is None else torch.compile(model, backend=backend, **compile_options)
    return Training(model, tuple(inputs), forward)


def _factory(target: str) -> Callable[..., tuple[torch.nn.Module, tuple[Any, ...]]]:
    path, _, name = target.rpartition(":")
    if not path or not Path(path).is_file():
        raise AutockptError(f"{target!r} is not SCRIPT.py:FACTORY with a script that exists")
    module_name = f"autockpt_script_{next(_NUMBER)}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise AutockptError(f"{path} is not a Python script")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    sys.path.insert(0, str(Path(path).parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    factory = getattr(module, name, None)
    if not callable(factory):
        raise AutockptError(f"{path} has no function {name!r}")
    return factory  # type: ignore[no-any-return]  # a stranger's function, trusted to be one
