"""Load the code that Inductor generated, its kernels doing nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

_IMPORT = "from torch._inductor.async_compile import AsyncCompile"


class NotLowered(Exception):
    """This step cannot be lowered ahead of its compilation."""


@dataclass
class Loader:
    """Stands in for `PyCodeCache`'s: what it loads has kernels that do nothing and is known to nobody else."""

    original: Callable[..., ModuleType]
    thread: int = field(default_factory=threading.get_ident)
    loaded: list[ModuleType] = field(default_factory=list)

    def __call__(self, key: str, path: str, *arguments: Any, **named: Any) -> ModuleType:
        if threading.get_ident() != self.thread:
            return self.original(key, path, *arguments, **named)
        attributes = named.get("attrs") or (arguments[1] if len(arguments) > 1 else None) or {}
        source = Path(path).read_text()
        if _IMPORT not in source:
            raise NotLowered("Inductor wrote code that this version of autockpt does not know")
        module = ModuleType(f"autockpt_dry_{key}")
        module.__file__ = path
        source = source.replace(_IMPORT, f"from {__name__} import NoKernels as AsyncCompile")
        with unset_fake_temporarily():
            exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
        for name, value in attributes.items():
            setattr(module, name, value.to("meta") if isinstance(value, torch.Tensor) else value)
        if (runner := getattr(module, "runner", None)) is not None:
            # Inductor wraps the parts of a step that CUDA graphs record, and takes them away when it lets go of it.
            module.call = type(runner)(list(runner.partitions)).call  # type: ignore[attr-defined]  # read by whoever runs it
        self.loaded.append(module)
        return module


class NoKernels:
    """Stands in for `AsyncCompile` in code that is run dry: every kernel compiles to nothing."""

    def wait(self, _: Any) -> None:
        pass

    def __getattr__(self, _: str) -> Callable[..., _Nothing]:
        return lambda *_, **__: _Nothing()


class _Nothing:
    """A kernel that does nothing, however it is launched."""

    def __call__(self, *_: Any, **__: Any) -> None:
        pass

    run = __call__
