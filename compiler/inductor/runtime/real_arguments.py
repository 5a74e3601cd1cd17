"""Operator calls of a traced graph with real tensors instead of fake ones, so that each can be run and timed alone."""

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
"""Random numbers that are drawn and then repeated: drawing millions takes longer than timing the kernel."""


class NotRunnable(Exception):
    """An operator call cannot be run alone; the message says why."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The properties of a tensor argument that the time of a kernel depends on."""

    which: int
    """Number of the tensor among those of its call, from 0; a tensor that is passed twice has one number."""
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    @property
    def nbytes(self) -> int:
        return self._length * self.dtype.itemsize

    @property
    def holds_indices(self) -> bool:
        """Whether its values may be indices, on which a kernel's memory accesses depend."""
        integral = not (self.dtype.is_floating_point or self.dtype.is_complex or self.dtype is torch.bool)
        return integral and bool(self.size)

    @property
    def is_contiguous(self) -> bool:
        """Row by row, without gaps; the stride of a dimension of size 1 does not matter."""
        return _row_major(self.size, self.stride)

    @property
    def is_transposed(self) -> bool:
        """Contiguous but for its last two dimensions, which are swapped."""
        swapped = [(*sizes[:-2], *reversed(sizes[-2:])) for sizes in (self.size, self.stride)]
        return _row_major(*swapped)

    @property
    def _length(self) -> int:
        if 0 in self.size:
            return 0
        return 1 + sum((size - 1) * stride for size, stride in zip(self.size, self.stride, strict=True))

    def real(self) -> torch.Tensor:
        """A tensor of this layout: normal random numbers, without subnormals, which slow a processor down; integers are
        0, which is a valid index of everything."""
        if not (self.dtype.is_floating_point or self.dtype.is_complex):
            flat = torch.zeros(self._length, dtype=self.dtype, device=self.device)
        else:
            generator = torch.Generator().manual_seed(0)
            wide = torch.complex64 if self.dtype.is_complex else torch.float32
            block = torch.randn(min(_BLOCK, self._length), generator=generator, dtype=wide)
            block = block.to(self.device, self.dtype)
            flat = block.repeat(-(-self._length // _BLOCK))
        return flat.as_strided(self.size, self.stride)


def _row_major(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


@dataclass(frozen=True, slots=True)
class RunnableCall:
    """One call of an operator on tensors of given layouts; calls with equal keys take equally long."""

    target: torch._ops.OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result_bytes: int
    device: torch.device
    """The device of the first result, on which the operator runs."""

    @property
    def key(self) -> str:
        return f"{self.target}{_code_of(self.target)} {self.args} {self.kwargs}"

    @property
    def layouts(self) -> Iterable[Layout]:
        leaves = pytree.arg_tree_leaves(*self.args, **self.kwargs)
        return {leaf.which: leaf for leaf in leaves if isinstance(leaf, Layout)}.values()

    @property
    def nbytes(self) -> int:
        """Memory of arguments and results, without the operator's workspace."""
        return sum(layout.nbytes for layout in self.layouts) + self.result_bytes

    def real(self) -> Callable[[], object]:
        """A function that runs the call on real tensors; it may be called any number of times."""
        tensors = {layout: layout.real() for layout in self.layouts}
        args, kwargs = pytree.tree_map_only(Layout, tensors.__getitem__, (self.args, self.kwargs))
        return partial(self.target, *args, **kwargs)


def runnable_calls(module: fx.GraphModule) -> Callable[[str], RunnableCall]:
    """A function that gives the call of a traced graph's node, by the name of that node."""
    nodes = {node.name: node for node in module.graph.nodes}
    return lambda name: runnable_call(nodes[name])


def runnable_call(node: fx.Node) -> RunnableCall:
    """The operator call of a node, symbolic sizes at their hints."""
    if not isinstance(node.target, torch._ops.OpOverload):
        raise NotRunnable("it is no registered operator")
    arguments = {source: _argument(source.meta.get("val"), at) for at, source in enumerate(node.all_input_nodes)}
    args, kwargs = fx.map_arg((node.args, node.kwargs), arguments.__getitem__)
    results = [
        _layout(leaf, at)
        for at, leaf in enumerate(pytree.tree_leaves(node.meta.get("val")))
        if isinstance(leaf, torch.Tensor)
    ]
    if not results:
        raise NotRunnable("it returns no tensor")
    return RunnableCall(node.target, args, dict(kwargs), sum(one.nbytes for one in results), results[0].device)


def _argument(value: Any, at: int) -> Any:
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
    """Byte code and constants of a custom operator written in Python: an edited operator has another key."""
    definition = OPDEFS.get(target._schema.name)
    code = getattr(getattr(definition, "_init_fn", None), "__code__", None)
    if code is None:
        return ""
    return f" {code.co_code.hex()} {[constant for constant in code.co_consts if not iscode(constant)]}"
