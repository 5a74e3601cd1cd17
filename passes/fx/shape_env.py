"""The dynamic sizes of one compilation: what Dynamo knows of them, and conditions that Dynamo checks at every call.

A condition that is added while Dynamo compiles becomes one of its guards: a call that does not meet it is compiled
anew, with its own sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import sympy  # type: ignore[import-untyped]  # has no hints
import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv, StrictMinMaxConstraint

from autockpt.passes.fx.sizes import UNKNOWN_SIZE, size_of
from autockpt.passes.fx.storages import tensors_of

_SIZE = re.compile(r"^L\['(?P<name>\w+)'\](?P<rest>.*?)(\.size\(\)\[(?P<dimension>\d+)\])?$")
_UNBOUNDED = 2**48
"""From here on a bound of a size is torch's way to say that there is none."""
_SELECTIONS = frozenset(
    {
        torch.ops.aten.nonzero.default,
        torch.ops.aten.masked_select.default,
        torch.ops.aten._unique2.default,
        torch.ops.aten.unique_dim.default,
        torch.ops.aten.unique_consecutive.default,
    }
)
"""Operators with at most one result for each element of their first argument."""


@dataclass(frozen=True, eq=False)
class Shapes:
    environment: ShapeEnv

    @classmethod
    def of(cls, nodes: Iterable[fx.Node]) -> Shapes | None:
        """Of a traced graph; None where all sizes are static."""
        values = (node.meta.get("val") for node in nodes)
        found = next((value for value in values if isinstance(value, torch.SymInt)), None)
        return None if found is None else cls(found.node.shape_env)

    def is_backed(self, symbol: Any) -> bool:
        """Whether a size is known when a call begins; all others depend on data."""
        return symbol in self.environment.backed_var_to_val

    def hint(self, symbol: Any) -> int:
        """The size that was traced."""
        return int(self.environment.backed_var_to_val[symbol])

    def upper_bound(self, symbol: Any) -> int | None:
        """The largest size that Dynamo allows for."""
        known = self.environment.var_to_range.get(symbol)
        if known is None or not known.upper.is_Integer or known.upper >= _UNBOUNDED:
            return None
        return int(known.upper)

    @cached_property
    def declared(self) -> Mapping[Any, int]:
        """Largest sizes that the user declared by `mark_dynamic(..., max=...)`: no guard may narrow them."""
        found: dict[Any, int] = {}
        for tracked in self.environment.tracked_fakes or ():
            constraints = getattr(tracked.symbolic_context, "constraint_sizes", None) or ()
            sizes = tracked.fake.shape if isinstance(tracked.fake, torch.Tensor) else ()
            for size, constraint in zip(sizes, constraints, strict=False):
                if isinstance(constraint, StrictMinMaxConstraint) and isinstance(size, torch.SymInt):
                    symbol = size.node.expr
                    if symbol.is_Symbol and (upper := self.upper_bound(symbol)) is not None:
                        found[symbol] = upper
        return found

    @cached_property
    def equalities(self) -> tuple[tuple[Any, Any], ...]:
        """Expressions in sizes that Dynamo assumes to be equal, such as `s0*s1` and `s2*s3` of tokens and targets.

        A symbol that Dynamo replaced by another does not occur in them, as it does not in the graph.
        """
        sizes, replace = self.environment.backed_var_to_val, self.environment.replace
        equations = [guard.expr for guard in self.environment.guards if isinstance(guard.expr, sympy.Eq)]
        pairs = [(replace(equation.lhs), replace(equation.rhs)) for equation in equations]
        return tuple((one, other) for one, other in pairs if one != other and _are_sizes(one - other, sizes))

    def allows(self, sizes: Mapping[Any, int]) -> bool:
        """Whether everything that Dynamo assumes of the sizes so far holds for these."""
        numbers = {symbol: sympy.Integer(size) for symbol, size in sizes.items()}
        if any(size not in self.environment.var_to_range[symbol] for symbol, size in sizes.items()):
            return False
        return all(guard.expr.xreplace(numbers) != sympy.false for guard in self.environment.guards)

    def name(self, symbol: Any) -> str:
        """As a user knows it, such as `x.size(0)`."""
        sources = self.environment.var_to_sources.get(symbol)
        if not sources:
            return str(symbol)
        found = _SIZE.match(sources[0].name)
        if found is None:
            return str(sources[0].name)
        dimension = found["dimension"]
        return found["name"] + found["rest"] + (f".size({dimension})" if dimension is not None else "")

    @property
    def is_complete(self) -> bool:
        """Whether guards can no longer be added."""
        return bool(self.environment.frozen)

    def require(self, conditions: Iterable[Any]) -> None:
        """Add conditions that hold for the traced sizes, as guards."""
        for condition in conditions:
            if self.environment.evaluate_expr(condition) != sympy.true:
                raise RuntimeError(f"the traced sizes do not meet {condition}")


def _are_sizes(expression: Any, sizes: Mapping[Any, Any]) -> bool:
    symbols = expression.free_symbols
    return bool(symbols) and all(symbol.is_integer and symbol in sizes for symbol in symbols)


def bounds_of(
    symbols: Iterable[Any], nodes: Sequence[fx.Node], shapes: Shapes, max_unbacked: int | None
) -> Mapping[Any, tuple[Any, str]]:
    """For each of these symbols that depends on data (masks, routing): a number, or an expression in other sizes, and
    where that is from.

    Such a size is known only after the operation that makes it has run, so no guard can check it before a call: the
    budget holds up to the bound.
    """
    unbacked = sorted((symbol for symbol in symbols if not shapes.is_backed(symbol)), key=str)
    return {symbol: _bound(symbol, nodes, shapes, max_unbacked) for symbol in unbacked}


def _bound(symbol: Any, nodes: Sequence[fx.Node], shapes: Shapes, max_unbacked: int | None) -> tuple[Any, str]:
    known = shapes.upper_bound(symbol)
    if max_unbacked is not None and (known is None or max_unbacked < known):
        return max_unbacked, "max_unbacked"
    if known is not None:
        return known, "the bound that torch knows"
    selected = _selected_from(symbol, nodes)
    if selected is not None:
        return prod(map(size_of, selected.meta["val"].shape)), f"the number of elements of `{selected.name}`"
    return UNKNOWN_SIZE, "assumed, torch knows no bound: set max_unbacked or torch._check one"


def _selected_from(symbol: Any, nodes: Sequence[fx.Node]) -> fx.Node | None:
    """The tensor of which each element adds at most one to this size, where an operator selects from a tensor."""
    maker = next((node for node in nodes if node.meta.get("unbacked_bindings") and symbol in _sizes(node)), None)
    if maker is None:
        return None
    if maker.target is torch.ops.aten.index.Tensor:
        indices = [index for index in maker.args[1] if isinstance(index, fx.Node)]  # type: ignore[union-attr]  # a list
        return next((index for index in indices if index.meta["val"].dtype is torch.bool), None)
    first = maker.args[0] if maker.target in _SELECTIONS else None
    return first if isinstance(first, fx.Node) and not _sizes(first) & {symbol} else None


def _sizes(node: fx.Node) -> set[Any]:
    """The sizes of its results, as expressions."""
    return {size_of(size) for tensor in tensors_of(node) for size in tensor.shape}
