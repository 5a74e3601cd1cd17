"""Values that Python code reads from tensors, while all tensors are fake.

Constructors read small tensors that they compute without inputs: `torch.linspace(0, rate, depth).tolist()` for the
rates of drop-path. A fake tensor has no values, so an equal real tensor on the host follows every operation on it. A
tensor whose values cannot be known (random, computed from a parameter, uninitialised, large) has none, and reading it
remains an error.

Code between two compiled graphs reads values as well: `print(loss.item())`, `if x.isnan().any()`, `x[x > 0]`. These
depend on parameters, so a step is analyzed with assumed ones, and the report says where.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import torch
from torch._guards import TracingContext
from torch._higher_order_ops.utils import registered_hop_fake_fns
from torch._ops import HigherOrderOperator
from torch._subclasses import FakeTensor, FakeTensorMode
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.weak import WeakIdKeyDictionary

from autockpt.inductor.torch_api import AutockptError

_MOST_ELEMENTS = 2**14
"""Of a tensor whose values are kept: tables of positions have thousands of elements, parameters have millions."""
_UNINITIALIZED = frozenset({"aten.empty", "aten.empty_like", "aten.empty_strided", "aten.new_empty"})
_CONSTANT = frozenset({"aten.fill_", "aten.zero_"})
_HOST = torch.device("cpu")
_NOT_THE_MODEL = (str(Path(torch.__file__).parent), str(Path(__file__).parent), contextlib.__file__)
_ASSUMED: dict[Any, Any] = {
    torch.ops.aten._local_scalar_dense.default: lambda x: False if x.dtype is torch.bool else 1.0,
    torch.ops.aten.equal.default: lambda *_: False,
    torch.ops.aten.nonzero.default: lambda x: x.new_empty((x.numel(), x.ndim), dtype=torch.int64),
    torch.ops.aten.masked_select.default: lambda x, mask: x.new_empty((x + mask).numel()),
}
"""What is assumed of a read value, or of a result whose size depends on values: all elements are selected."""


class StepMode(FakeTensorMode):  # type: ignore[no-untyped-call]  # torch's class has no hints
    """The fake mode of a step. While `assuming`, reading a value outside of a compiled graph is no error."""

    # torch looks for an operator's rule by the exact class of a mode, and finds none of FakeTensorMode's for this one.
    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self.assumptions: dict[str, None] = {}
        """One sentence for each line that reads a value, in order."""
        self._is_assuming = False

    @contextlib.contextmanager
    def assuming(self) -> Iterator[None]:
        before, self._is_assuming = self._is_assuming, True
        try:
            yield
        finally:
            self._is_assuming = before

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in registered_hop_fake_fns and isinstance(func, HigherOrderOperator):
            return func.python_key_table[FakeTensorMode](self, *args, **(kwargs or {}))
        try:
            return super().dispatch(func, types, args, kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            # While Dynamo captures, the error makes it break the graph, as in training.
            if not self._is_assuming or TracingContext.try_get() is not None:
                raise
            if not _can_assume(func, args):
                raise AutockptError(_refused()) from None
            self.assumptions[_assumption(func, args[0])] = None
            return _ASSUMED[func](*args)


def line_of(frames: traceback.StackSummary) -> str:
    """The innermost line that is neither torch's nor ours: file, number and text."""
    last = next((frame for frame in reversed(frames) if not frame.filename.startswith(_NOT_THE_MODEL)), frames[-1])
    return f"{last.filename}:{last.lineno}: {last.line}"


def _can_assume(func: Any, args: Any) -> bool:
    """No integer is assumed: most are sizes or positions, on which the whole step depends."""
    if func is torch.ops.aten._local_scalar_dense.default:
        return bool(args[0].dtype is torch.bool or args[0].is_floating_point())
    return func in _ASSUMED


def _refused() -> str:
    return (
        "the step reads a value of a tensor, on which sizes or positions may depend, and tensors have no memory in an "
        f"analysis: {line_of(traceback.extract_stack())}. Compute the value without tensors, or pass it as an argument"
    )


def _assumption(func: Any, read: torch.Tensor) -> str:
    place = line_of(traceback.extract_stack())
    if torch.Tag.dynamic_output_shape in func.tags:
        return f"as many elements as there are, {read.numel()}, are assumed to be selected at {place}"
    value = _ASSUMED[func](read)
    return f"a tensor's value is read between graphs, and assumed to be {value}, at {place}"


class KnownValues(TorchDispatchMode):
    """Entered inside of a FakeTensorMode: operations whose values are known also run on real tensors."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._known: MutableMapping[torch.Tensor, torch.Tensor] = WeakIdKeyDictionary()
        """From fake tensors to real ones on the host, which share memory where the fake ones do."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if _is_initializer(func) and tensors[0] not in self._known:
            # The values were unknown and remain so.
            return tensors[0]
        if not _is_computable(func) or not all(self._has_value(tensor) for tensor in tensors):
            self._forget(_written(func, args, kwargs))
            return func(*args, **kwargs)
        if _depends_on_values(func):
            return self._fake(self._compute(func, args, kwargs), args[0])
        fake = func(*args, **kwargs)
        if any(leaf.numel() > _MOST_ELEMENTS for leaf in tree_leaves(fake) if isinstance(leaf, torch.Tensor)):
            self._forget(_written(func, args, kwargs))
            return fake
        for leaf, value in zip(tree_leaves(fake), tree_leaves(self._compute(func, args, kwargs)), strict=True):
            if isinstance(leaf, FakeTensor):
                self._known[leaf] = value
        return fake

    def _has_value(self, tensor: torch.Tensor) -> bool:
        return tensor in self._known or _is_real(tensor)

    def _compute(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The operation on known values, on the host."""

        def on_host(leaf: Any) -> Any:
            if isinstance(leaf, torch.Tensor):
                return leaf if _is_real(leaf) else self._known[leaf]
            return _HOST if isinstance(leaf, torch.device) else leaf

        named = {name: value for name, value in kwargs.items() if name != "pin_memory"}
        real_args, real_named = tree_map(on_host, (args, named))
        with no_dispatch():
            return func(*real_args, **real_named)

    def _fake(self, result: Any, like: torch.Tensor) -> Any:
        """A fake tensor for each tensor of a real result whose size only the values could tell."""

        def fake(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            made = torch.empty_strided(leaf.size(), leaf.stride(), dtype=leaf.dtype, device=like.device)
            self._known[made] = leaf
            return made

        return tree_map(fake, result)

    def _forget(self, written: Iterator[torch.Tensor]) -> None:
        """Of these tensors and of all that share memory with them."""
        lost = {self._known[tensor].untyped_storage().data_ptr() for tensor in written if tensor in self._known}
        if lost:
            views = [key for key, value in self._known.items() if value.untyped_storage().data_ptr() in lost]
            for tensor in views:
                del self._known[tensor]


def _is_computable(func: Any) -> bool:
    """Whether equal inputs give equal outputs, which have values."""
    return (
        isinstance(func, torch._ops.OpOverload)
        and func.namespace in ("aten", "prims")
        and torch.Tag.nondeterministic_seeded not in func.tags
        and str(func.overloadpacket) not in _UNINITIALIZED
    )


def _is_initializer(func: Any) -> bool:
    """Whether the operation overwrites its first argument with random numbers or one constant, and returns it."""
    if not isinstance(func, torch._ops.OpOverload) or not str(func.overloadpacket).endswith("_"):
        return False
    return torch.Tag.nondeterministic_seeded in func.tags or str(func.overloadpacket) in _CONSTANT


def _depends_on_values(func: Any) -> bool:
    return torch.Tag.data_dependent_output in func.tags or torch.Tag.dynamic_output_shape in func.tags


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[torch.Tensor]:
    arguments = func._schema.arguments if isinstance(func, torch._ops.OpOverload) else ()
    for number, argument in enumerate(arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[number] if number < len(args) else kwargs.get(argument.name)
            yield from (leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor))


def _is_real(tensor: torch.Tensor) -> bool:
    """Small and on the host: the numbers of `torch.tensor(...)` before they become fake."""
    return type(tensor) is torch.Tensor and tensor.device == _HOST and tensor.numel() <= _MOST_ELEMENTS
