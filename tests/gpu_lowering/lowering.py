"""Lower a model for a fake GPU through torch.compile, and call the generated code with tensors of the CPU."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
import torch._functorch.config as functorch_config
from torch import Tensor, nn
from torch._dynamo import lookup_backend
from torch._dynamo.utils import counters
from torch._inductor.codecache import PyCodeCache

import autockpt
from autockpt.cost_models import load_profile
from autockpt.inductor.fake.cuda import fake_cuda_device
from autockpt.inductor.fake.gpus import fake_triton_driver, gpu_properties
from autockpt.inductor.fake.step import FakeStep, from_model
from autockpt.machine import cache_folder

_CALL = re.compile(r"^\s+triton_\w+\.run\(", re.MULTILINE)
_KERNEL = re.compile(r"async_compile\.triton\('(\w+)', '''(.*?)'''", re.DOTALL)


@contextmanager
def gpu(name: str = "h100-sxm") -> Iterator[torch.device]:
    """A fake GPU. The backward is lowered with the forward, not when it first runs: here it may never run."""
    profile = load_profile(name)
    with (
        fake_cuda_device(profile, cache_folder()) as traced,
        fake_triton_driver(gpu_properties(profile.name)[0]),
        functorch_config.patch(force_non_lazy_backward_lowering=True),
    ):
        assert traced.device.type == "cuda", traced.approximations
        yield traced.device


@dataclass
class LoweredStep:
    """Generated code of forward and backward, ready to be called."""

    compiled: Callable[..., Any]
    arguments: tuple[Any, ...]
    """The fake tensors that Dynamo passed."""
    wrappers: list[str]
    modules: list[ModuleType]
    """The wrappers, loaded."""
    decision: autockpt.GraphDecision | None
    found_in_cache: int
    """Wrappers that a dry run had generated before."""
    real: dict[int, Tensor] = field(default_factory=dict)
    """The CPU tensor for each fake one, by its `id`."""

    def __call__(self) -> tuple[Tensor, ...]:
        return tuple(self.compiled(*(self.real[id(argument)] for argument in self.arguments)))

    @property
    def calls(self) -> int:
        """Launches of kernels in the source of the two wrappers."""
        return sum(len(_CALL.findall(wrapper)) for wrapper in self.wrappers)

    @property
    def kernels(self) -> dict[str, str]:
        """Source of each kernel, by number of the pass and name."""
        found = (
            (number, kernel) for number, wrapper in enumerate(self.wrappers) for kernel in _KERNEL.findall(wrapper)
        )
        return {f"{number} {name}": source for number, (name, source) in found}


def lower(
    model: nn.Module, inputs: tuple[Tensor, ...], device: torch.device, backend: str, options: Any
) -> LoweredStep:
    """The step of a real model; when it is called, it uses the parameters of the model and these inputs."""
    step = from_model(model, inputs, {}, device)
    lowered = lower_fake(step, backend, options)
    assert isinstance(step.forward, nn.Module)
    fakes = chain(step.forward.parameters(), step.forward.buffers(), step.inputs)
    lowered.real = dict(zip(map(id, fakes), chain(model.parameters(), model.buffers(), inputs), strict=True))
    return lowered


def lower_fake(step: FakeStep, backend: str, options: Any) -> LoweredStep:
    """The step of a fake model, which can be counted and not called."""
    caught: list[tuple[Any, tuple[Any, ...]]] = []

    def catch(gm: Any, examples: Any) -> Callable[..., Any]:
        arguments = {} if options is None else {"options": options}
        compiled = lookup_backend(backend)(gm, examples, **arguments)

        def call(*arguments: Any) -> Any:
            caught.append((compiled, arguments))
            raise _Caught

        return call

    before = len(autockpt.decisions())
    torch._dynamo.reset()
    counters.clear()
    with _recorded() as modules, step.mode, suppress(_Caught):
        torch.compile(step.forward, backend=catch, fullgraph=True)(*step.inputs)
    ((compiled, arguments),) = caught
    made = autockpt.decisions()[before:]
    found = counters["inductor"]["fxgraph_cache_hit"]
    wrappers = [Path(str(module.__file__)).read_text() for module in modules]
    return LoweredStep(compiled, arguments, wrappers, modules, made[0] if made else None, found)


class _Caught(Exception):
    """Raised instead of running a compiled step on fake tensors."""


@contextmanager
def _recorded() -> Iterator[list[ModuleType]]:
    """The wrappers that are loaded to run. A dry run loads its wrappers without this function."""
    wrappers: list[ModuleType] = []
    load = PyCodeCache.load_by_key_path

    def recorded(key: str, path: str, *args: Any, **kwargs: Any) -> Any:
        module = load(key, path, *args, **kwargs)
        if "async_compile = AsyncCompile()" in Path(path).read_text():
            wrappers.append(module)
        return module

    with patch.object(PyCodeCache, "load_by_key_path", recorded):
        yield wrappers
