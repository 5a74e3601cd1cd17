"""Sizes of traced tensors: integers where they are static, sympy expressions where they are dynamic.

Nothing here compares symbolic sizes, since each comparison would add a guard to the compiled code.
"""

from __future__ import annotations

from typing import Any

import sympy  # type: ignore[import-untyped]  # has no hints
import torch
from torch.utils._sympy.functions import FloorDiv
from torch.utils._sympy.functions import Max as TorchMax

from autockpt.cost_models import TensorSpec
from autockpt.cost_models.memory import allocated_bytes

UNKNOWN_SIZE = 4096
"""Hint of a size that depends on data and has no known bound; torch's own partitioner assumes the same."""


def size_of(size: int | torch.SymInt) -> Any:
    """An int, or the expression of a dynamic size."""
    if isinstance(size, int):
        return size
    expression = size.node.expr
    return int(expression) if expression.is_number else expression


def hint_of(value: Any) -> Any:
    """The number that a symbolic one had when it was traced; anything else as it is."""
    if isinstance(value, torch.SymInt):
        return int(value.node.shape_env.optimization_hint(value.node.expr, fallback=UNKNOWN_SIZE))
    if isinstance(value, torch.SymFloat | torch.SymBool):
        return value.node.hint
    return value


def spec_of(tensor: torch.Tensor, *, at_hints: bool = False) -> TensorSpec:
    size = hint_of if at_hints else size_of
    shape = tuple(map(size, tensor.shape))
    return TensorSpec(shape, str(tensor.dtype).removeprefix("torch."), tensor.dtype.itemsize)


def storage_bytes(tensor: torch.Tensor) -> Any:
    """Bytes that the storage of a tensor takes on its device.

    Not on the CPU alone: small tensors of a GPU, such as the random state of attention, are traced on the meta device.
    """
    return _allocated(size_of(tensor.untyped_storage().nbytes()), tensor.device)


def tensor_bytes(tensor: torch.Tensor) -> Any:
    """Bytes that a tensor of this shape takes on its device, with a storage of its own."""
    return _allocated(spec_of(tensor).nbytes, tensor.device)


def _allocated(nbytes: Any, device: torch.device) -> Any:
    if device.type == "cpu":
        return nbytes
    return allocated_bytes(nbytes) if isinstance(nbytes, int) else AllocatedBytes(nbytes)


class AllocatedBytes(sympy.Function):  # type: ignore[misc]  # sympy has no hints
    """`allocated_bytes` of an expression: evaluated as soon as its argument is a number."""

    @classmethod
    def eval(cls, nbytes: Any) -> Any:
        return sympy.Integer(allocated_bytes(int(nbytes))) if nbytes.is_Integer else None


def without_rounding(nbytes: Any) -> Any:
    """A byte count as an expression, without the rounding of a GPU's allocations.

    What torch leaves unsimplified of it is simplified, where that changes no value: a quotient without a remainder, and
    a maximum of 1 and a size.
    """
    exact = sympy.sympify(nbytes).replace(AllocatedBytes, lambda argument: argument)
    return exact.replace(FloorDiv, _quotient).replace(sympy.Max, _maximum).replace(TorchMax, _maximum)


def _quotient(dividend: Any, divisor: Any) -> Any:
    found = sympy.cancel(dividend / divisor)
    return found if _is_whole(found) else FloorDiv(dividend, divisor)


def _maximum(*values: Any) -> Any:
    sizes = [value for value in values if not value.is_number]
    is_size = len(sizes) == 1 and _is_whole(sizes[0]) and all(value <= 1 for value in values if value.is_number)
    return sizes[0] if is_size else TorchMax(*values)  # type: ignore[no-untyped-call]  # of torch


def _is_whole(expression: Any) -> bool:
    """Whether it is a sum of products of sizes, without a subtraction: at least 1 wherever no size is 0."""
    polynomial = expression.as_poly(*expression.free_symbols) if expression.free_symbols else None
    return polynomial is not None and all(factor.is_Integer and factor > 0 for factor in polynomial.coeffs())
