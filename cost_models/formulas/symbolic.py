"""Arithmetic on sizes that may be sympy expressions, and the numbers they become at the hints of their symbols."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import sympy  # type: ignore[import-untyped]  # has no hints

from autockpt.cost_models.work import TensorSpec, Work

Hints = Mapping[sympy.Symbol, int]
"""A number for every symbol."""


def largest(*sizes: Any) -> Any:
    """`max`, as an expression where the sizes do not decide it."""
    if any(isinstance(size, sympy.Basic) for size in sizes):
        return sympy.Max(*sizes)
    return max(sizes, default=0)


def smallest(*sizes: Any) -> Any:
    """`min`, as an expression where the sizes do not decide it."""
    return sympy.Min(*sizes) if any(isinstance(size, sympy.Basic) for size in sizes) else min(sizes)


def log2(size: Any) -> Any:
    """Number of halvings down to one, at least one."""
    if isinstance(size, sympy.Basic):
        return sympy.log(sympy.Max(size, 2), 2)
    return math.log2(max(size, 2))


def surely(condition: Any) -> bool:
    """Whether a comparison holds for every value of its symbols."""
    return condition is True or condition == sympy.true


def symbols_in(quantities: Iterable[Any]) -> frozenset[sympy.Symbol]:
    """All symbols that occur in these numbers and expressions."""
    expressions = {quantity for quantity in quantities if isinstance(quantity, sympy.Basic)}
    return frozenset().union(*(expression.free_symbols for expression in expressions))


def evaluate(work: Work, hints: Hints) -> Work:
    """The same work in numbers."""
    transfer = work.transfer
    if transfer is not None:
        transfer = replace(transfer, nbytes=float(number_at(transfer.nbytes, hints)))
    return replace(
        work,
        transfer=transfer,
        matrix_flops=float(number_at(work.matrix_flops, hints)),
        elements=float(number_at(work.elements, hints)),
        random_numbers=float(number_at(work.random_numbers, hints)),
        bytes_moved=float(number_at(work.bytes_moved, hints)),
    )


def evaluate_spec(spec: TensorSpec, hints: Hints) -> TensorSpec:
    """The same tensor with sizes in numbers."""
    return replace(spec, shape=tuple(int(number_at(size, hints)) for size in spec.shape))


def number_at(quantity: Any, hints: Hints) -> Any:
    """A number as it is, an expression with its symbols at their hints; ValueError for a symbol without one."""
    if not isinstance(quantity, sympy.Basic):
        return quantity
    known = quantity.xreplace({symbol: sympy.Integer(hint) for symbol, hint in hints.items()})
    if known.free_symbols:
        missing = ", ".join(sorted(map(str, known.free_symbols)))
        raise ValueError(f"no hint for the size {missing}: give a number for every symbol of the shapes")
    return known
