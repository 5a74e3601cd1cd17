"""Real tensors in the place of a graph's fake ones, so that one of its operations can be run by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from inspect import iscode
from typing import Any

import torch
from torch import fx
from torch._library.custom_ops import OPDEFS
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

_BLOCK = 4096
"""Random numbers that fill a tensor over and over: to draw millions takes longer than to time what reads them."""


class NotRunnable(Exception):
    """An operation cannot be run by itself; the message says why."""


@dataclass(frozen=True, slots=True)
class Layout:
    """All of a tensor that the time of a kernel depends on."""

    which: int
    """Of the tensors of a call, counted from 0; a tensor that is given twice is one."""
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    @property
    def nbytes(self) -> int:
        return self._length * self.dtype.itemsize

    @property
    def holds_indices(self) -> bool:
        """Whether it may say where other elements are, and so decide how a kernel walks through memory."""
        integral = not (self.dtype.is_floating_point or self.dtype.is_complex or self.dtype is torch.bool)
        return integral and bool(self.size)

    @property
    def _length(self) -> int:
        if 0 in self.size:
            return 0
        return 1 + sum((size - 1) * stride for size, stride in zip(self.size, self.stride, strict=True))

    def real(self) -> torch.Tensor:
        """Moderate numbers without the subnormals that slow a processor down; integers are 0, an index that is always
        there."""
        if not (self.dtype.is_floating_point or self.dtype.is_complex):
            flat = torch.zeros(self._length, dtype=self.dtype, device=self.device)
        else:
            generator = torch.Generator().manual_seed(0)
            wide = torch.complex64 if self.dtype.is_complex else torch.float32
            block = torch.randn(min(_BLOCK, self._length), generator=generator, dtype=wide)
            block = block.to(self.device, self.dtype)
            flat = block.repeat(-(-self._length // _BLOCK))
        return flat.as_strided(self.size, self.stride)


@dataclass(frozen=True, slots=True)
class RunnableCall:
    """One operation on tensors that are described; equal calls take equally long."""

    target: torch._ops.OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result_bytes: int
    device: torch.device
    """Of the first result: where it runs."""

    @property
    def key(self) -> str:
        return f"{self.target}{_code_of(self.target)} {self.args} {self.kwargs}"

    @property
    def layouts(self) -> Iterable[Layout]:
        leaves = pytree.arg_tree_leaves(*self.args, **self.kwargs)
        return {leaf.which: leaf for leaf in leaves if isinstance(leaf, Layout)}.values()

    @property
    def nbytes(self) -> int:
        """What it takes to run it, scratch aside."""
        return sum(layout.nbytes for layout in self.layouts) + self.result_bytes

    def real(self) -> Callable[[], object]:
        """Ready to run, as often as one likes."""
        tensors = {layout: layout.real() for layout in self.layouts}
        args, kwargs = pytree.tree_map_only(Layout, tensors.__getitem__, (self.args, self.kwargs))
        return partial(self.target, *args, **kwargs)


def runnable_call(node: fx.Node) -> RunnableCall:
    """The call that a node of a traced graph stands for, symbolic sizes at their hints."""
    if not isinstance(node.target, torch._ops.OpOverload):
        raise NotRunnable("it is no registered operator")
    given = {source: _given(source.meta.get("val"), at) for at, source in enumerate(node.all_input_nodes)}
    args, kwargs = fx.map_arg((node.args, node.kwargs), given.__getitem__)
    results = [
        _layout(leaf, at)
        for at, leaf in enumerate(pytree.tree_leaves(node.meta.get("val")))
        if isinstance(leaf, torch.Tensor)
    ]
    if not results:
        raise NotRunnable("it makes no tensor")
    return RunnableCall(node.target, args, dict(kwargs), sum(one.nbytes for one in results), results[0].device)


def _given(value: Any, at: int) -> Any:
    if isinstance(value, torch.Tensor):
        return _layout(value, at)
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return _hint(value)
    if isinstance(value, int | float):
        return value
    raise NotRunnable(f"an argument is a {type(value).__name__}")


def _layout(tensor: torch.Tensor, at: int) -> Layout:
    if type(tensor) not in (FakeTensor, torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
        raise NotRunnable(f"a tensor is a {type(tensor).__name__} with layout {tensor.layout}")
    size, stride = (tuple(int(_hint(one)) for one in sizes) for sizes in (tensor.shape, tensor.stride()))
    return Layout(at, size, stride, tensor.dtype, tensor.device)


def _hint(symbol: Any) -> Any:
    if not isinstance(symbol, torch.SymInt | torch.SymFloat | torch.SymBool):
        return symbol
    if symbol.node.hint is None:
        raise NotRunnable(f"size {symbol} depends on data")
    return symbol.node.hint


def _code_of(target: torch._ops.OpOverload) -> str:
    """Of an operator written in Python, its code: edited, it is another operator."""
    written = OPDEFS.get(target._schema.name)
    code = getattr(getattr(written, "_init_fn", None), "__code__", None)
    if code is None:
        return ""
    return f" {code.co_code.hex()} {[constant for constant in code.co_consts if not iscode(constant)]}"
