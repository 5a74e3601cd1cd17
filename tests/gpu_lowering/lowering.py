"""Lower a model for a GPU that is not here, through torch.compile, and call what comes out with the CPU's tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
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
from autockpt.inductor.fake_cuda import fake_cuda_device, gpu_properties
from autockpt.inductor.fake_step import FakeStep, from_model
from autockpt.inductor.fake_triton import fake_triton_driver
from autockpt.machine import cache_folder

_CALL = re.compile(r"^\s+triton_\w+\.run\(", re.MULTILINE)
_KERNEL = re.compile(r"async_compile\.triton\('(\w+)', '''(.*?)'''", re.DOTALL)


@contextmanager
def gpu(name: str = "h100-sxm") -> Iterator[torch.device]:
    """A device to lower for; forward and backward are lowered together, for no backward may ever run."""
    profile = load_profile(name)
    with (
        fake_cuda_device(profile, cache_folder()) as place,
        fake_triton_driver(gpu_properties(profile.name)[0]),
        functorch_config.patch(force_non_lazy_backward_lowering=True),
    ):
        assert place.device.type == "cuda", place.approximations
        yield place.device


@dataclass
class Lowered:
    """The code of both passes, ready to be called."""

    compiled: Callable[..., Any]
    arguments: tuple[Any, ...]
    """As Dynamo passed them: fake tensors, each of which stands for one of the CPU's."""
    wrappers: list[str]
    decision: autockpt.GraphDecision | None
    found_in_cache: int
    """Wrappers that a look at the plan had lowered before."""
    real: dict[int, Tensor] = field(default_factory=dict)

    def __call__(self) -> tuple[Tensor, ...]:
        return tuple(self.compiled(*(self.real[id(argument)] for argument in self.arguments)))

    @property
    def calls(self) -> int:
        """Of kernels, written in the two wrappers."""
        return sum(len(_CALL.findall(wrapper)) for wrapper in self.wrappers)

    @property
    def kernels(self) -> dict[str, str]:
        """Source by name and pass."""
        found = (
            (number, kernel) for number, wrapper in enumerate(self.wrappers) for kernel in _KERNEL.findall(wrapper)
        )
        return {f"{number} {name}": source for number, (name, source) in found}


def lower(model: nn.Module, inputs: tuple[Tensor, ...], device: torch.device, backend: str, options: Any) -> Lowered:
    """Of a model that is here: called, its own parameters and inputs are used."""
    step = from_model(model, inputs, {}, device)
    lowered = lower_fake(step, backend, options)
    assert isinstance(step.forward, nn.Module)
    fakes = chain(step.forward.parameters(), step.forward.buffers(), step.inputs)
    lowered.real = dict(zip(map(id, fakes), chain(model.parameters(), model.buffers(), inputs), strict=True))
    return lowered


def lower_fake(step: FakeStep, backend: str, options: Any) -> Lowered:
    caught: list[tuple[Any, tuple[Any, ...]]] = []

    def catch(gm: Any, examples: Any) -> Callable[..., Any]:
        given = {} if options is None else {"options": options}
        compiled = lookup_backend(backend)(gm, examples, **given)

        def call(*arguments: Any) -> Any:
            caught.append((compiled, arguments))
            raise _Caught

        return call

    before = len(autockpt.decisions())
    torch._dynamo.reset()
    counters.clear()
    with _recorded() as wrappers, step.mode, suppress(_Caught):
        torch.compile(step.forward, backend=catch, fullgraph=True)(*step.inputs)
    ((compiled, arguments),) = caught
    made = autockpt.decisions()[before:]
    found = counters["inductor"]["fxgraph_cache_hit"]
    return Lowered(compiled, arguments, wrappers, made[0] if made else None, found)


class _Caught(Exception):
    """The step is compiled; with fake tensors it shall not run."""


@contextmanager
def _recorded() -> Iterator[list[str]]:
    """The wrappers that are loaded to be run; those that are only looked at never come here."""
    wrappers: list[str] = []
    load = PyCodeCache.load_by_key_path

    def recorded(key: str, path: str, *args: Any, **kwargs: Any) -> Any:
        source = Path(path).read_text()
        if "async_compile = AsyncCompile()" in source:
            wrappers.append(source)
        return load(key, path, *args, **kwargs)

    with patch.object(PyCodeCache, "load_by_key_path", recorded):
        yield wrappers
