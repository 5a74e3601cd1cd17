"""Triton's interpreter with libdevice, correct rounding of bfloat16, poisoned memory and a record of launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import triton.language as tl
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from triton.language.extra import libdevice
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle, interpreter_builder

_OTHER_NAMES = {"nearbyint": torch.round, "fast_tanhf": torch.tanh, "pow": torch.pow, "rint": torch.round}
POISONS = (1, 0)
"""Of integers, which have no NaN: valid indices. A result may happen to be the one, not both."""


@dataclass
class Launches:
    """Names of the kernels that a step launches, in order; one launch may be left out."""

    names: list[str] = field(default_factory=list)
    left_out: int | None = None
    poison: int = POISONS[0]

    def restart(self, left_out: int | None = None, poison: int = POISONS[0]) -> None:
        self.names, self.left_out, self.poison = [], left_out, poison

    def skips(self, name: str) -> bool:
        self.names.append(name)
        return self.left_out == len(self.names) - 1

    def poisoned(self, size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
        """Uninitialized memory is NaN, so that a read before a write shows in every result that depends on it."""
        tensor = torch.empty_strided(size, stride, dtype=dtype)
        return tensor.fill_(float("nan") if dtype.is_floating_point else self.poison)


@contextmanager
def interpreted() -> Iterator[Launches]:
    """Code generated for CUDA runs in the interpreter, on memory of the CPU."""
    launches = Launches()
    run = CachingAutotuner.run

    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        return None if launches.skips(self.fn.__name__) else run(self, *args, **kwargs)

    # As Inductor compiles kernels: without overflow checks of integers.
    options = replace(interpreter_builder.options, sanitize_overflow=False)
    functions = {name: _lifted(function) for name, function in _library().items()}
    with (
        _language_patched_once(),
        patch.object(CachingAutotuner, "run", recorded),
        patch.multiple(libdevice, **functions),
        patch.object(InterpreterBuilder, "cast_impl", _rounding(InterpreterBuilder.cast_impl)),
        patch.object(InterpreterBuilder, "create_atomic_rmw", _contiguous(InterpreterBuilder.create_atomic_rmw)),
        patch.object(interpreter_builder, "options", options),
        patch.object(torch._C._dynamo.guards, "_empty_strided_cuda", launches.poisoned),
    ):
        yield launches


@contextmanager
def _language_patched_once() -> Iterator[None]:
    """Patch Triton's language once for all kernels; the interpreter does so for every function that a kernel calls."""
    whole = SimpleNamespace(__globals__={"language": tl, "core": tl.core})
    scope = interpreter._patch_lang(whole)
    try:
        with patch.object(interpreter, "_patch_lang", lambda _: interpreter._LangPatchScope()):
            yield
    finally:
        scope.restore()


def _rounding(cast: Callable[..., Any]) -> Callable[..., Any]:
    """The interpreter truncates to bfloat16 and reinterprets integers; hardware rounds to even and converts."""

    def rounded(self: Any, source: Any, wanted: Any) -> Any:
        if wanted.scalar == tl.bfloat16 != source.dtype.scalar:
            numbers = torch.from_numpy(np.array(source.data, dtype=np.float32)).to(torch.bfloat16)
            return TensorHandle(numbers.view(torch.int16).numpy().view(np.uint16), tl.bfloat16)
        return cast(self, source, wanted)

    return rounded


def _contiguous(atomic: Callable[..., Any]) -> Callable[..., Any]:
    """The interpreter reads operands of atomics as if they were contiguous; a mask that was broadcast is not."""

    def made(self: Any, operation: Any, pointer: Any, value: Any, mask: Any, *rest: Any) -> Any:
        operands = (TensorHandle(np.ascontiguousarray(one.data), one.dtype) for one in (pointer, value, mask))
        return atomic(self, operation, *operands, *rest)

    return made


def _library() -> dict[str, Callable[..., torch.Tensor]]:
    """Functions of libdevice, which are empty in the interpreter: torch has most of them under the same name."""
    names = [name for name in vars(libdevice) if not name.startswith("_")]
    same = {name: getattr(torch, name) for name in names if hasattr(torch, name)}
    return same | {name: function for name, function in _OTHER_NAMES.items() if name in names}


def _lifted(function: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """A function of torch tensors as a function of the interpreter's tensors."""

    def call(*args: Any) -> Any:
        first = next(argument for argument in args if isinstance(argument, tl.tensor))
        result = function(*map(_as_torch, args))
        if result.dtype != torch.bool:
            return tl.tensor(TensorHandle(result.numpy(), first.type.scalar), first.type)
        # These functions return integers in libdevice.
        handle = TensorHandle(result.to(torch.int32).numpy(), tl.int32)
        return tl.tensor(handle, tl.block_type(tl.int32, first.type.shape) if first.type.is_block() else tl.int32)

    return call


def _as_torch(argument: Any) -> torch.Tensor:
    return (
        torch.from_numpy(np.asarray(argument.handle.data))
        if isinstance(argument, tl.tensor)
        else torch.tensor(argument)
    )
