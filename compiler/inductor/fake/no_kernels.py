"""Load a wrapper that Inductor generated with kernels that do nothing, ready for a dry run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

_KERNEL_COMPILER = "from torch._inductor.async_compile import AsyncCompile"
_TEMPLATE = "@triton_heuristics.template("
_NAME = "autockpt_dry_"
"""Begins the names of modules that are run dry."""


class NotLowered(Exception):
    """The code of this step cannot be generated before its compilation; the message says why."""


@dataclass
class LoadWithoutKernels:
    """Replaces `PyCodeCache.load_by_key_path`: loads generated code with kernels that do nothing, outside its cache."""

    loaded: list[ModuleType] = field(default_factory=list)

    def __call__(self, key: str, path: str, *arguments: Any, **named: Any) -> ModuleType:
        attributes = named.get("attrs") or (arguments[1] if len(arguments) > 1 else None) or {}
        source = Path(path).read_text()
        module = ModuleType(f"{_NAME}{key}")
        module.__file__ = path
        if _TEMPLATE in source and _KERNEL_COMPILER not in source:
            # A kernel from a template, which Inductor loads to time it and asks for its key and its file only.
            module.key = key  # type: ignore[attr-defined]  # as Inductor's loader sets it
            return module
        if _KERNEL_COMPILER not in source:
            raise NotLowered("Inductor's generated code has a form that this version of autockpt does not know")
        source = source.replace(_KERNEL_COMPILER, f"from {__name__} import NoKernels as AsyncCompile")
        with unset_fake_temporarily():
            exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
        for name, value in attributes.items():
            setattr(module, name, value.to("meta") if isinstance(value, torch.Tensor) else value)
        if (runner := getattr(module, "runner", None)) is not None:
            # For CUDA graphs Inductor wraps the partitions of this runner, and clears them with the compiled graph.
            module.call = type(runner)(list(runner.partitions)).call  # type: ignore[attr-defined]  # what a dry run calls
        self.loaded.append(module)
        return module


def is_generated(variables: Mapping[str, Any]) -> bool:
    """Whether these are the global variables of generated code that is run dry."""
    return str(variables.get("__name__", "")).startswith(_NAME)


class NoKernels:
    """Replaces `AsyncCompile` in code that is run dry: every kernel compiles to one that does nothing."""

    def wait(self, _: Any) -> None:
        pass

    def __getattr__(self, _: str) -> Callable[..., _NoKernel]:
        return lambda *_, **__: _NoKernel()


class _NoKernel:
    """A kernel that does nothing, however it is launched."""

    def __call__(self, *_: Any, **__: Any) -> None:
        pass

    run = __call__
