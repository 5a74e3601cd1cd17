"""Arithmetic on sizes that may be sympy expressions, and the numbers that hints make of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import sympy  # type: ignore[import-untyped]  # has no hints

from autockpt.cost_models.work import Work


def largest(*sizes: Any) -> Any:
    """`max` that does not ask which of two symbols is larger."""
    if any(isinstance(size, sympy.Basic) for size in sizes):
        return sympy.Max(*sizes)
    return max(sizes, default=0)


def smallest(*sizes: Any) -> Any:
    return sympy.Min(*sizes) if any(isinstance(size, sympy.Basic) for size in sizes) else min(sizes)


def log2(size: Any) -> Any:
    """Steps of halving; at least one."""
    if isinstance(size, sympy.Basic):
        return sympy.log(sympy.Max(size, 2), 2)
    return math.log2(max(size, 2))


def surely(condition: Any) -> bool:
    """Whether a comparison holds for every value of its symbols."""
    return condition is True or condition == sympy.true


def evaluate(work: Work, hints: Mapping[sympy.Symbol, int]) -> Work:
    """The same work in numbers, its symbols at their hints."""
    numbers = {symbol: sympy.Integer(hint) for symbol, hint in hints.items()}
    return replace(
        work,
        matrix_flops=_number(work.matrix_flops, numbers),
        elements=_number(work.elements, numbers),
        random_numbers=_number(work.random_numbers, numbers),
        bytes_moved=_number(work.bytes_moved, numbers),
    )


def _number(quantity: Any, hints: Mapping[sympy.Symbol, sympy.Integer]) -> float:
    if not isinstance(quantity, sympy.Basic):
        return float(quantity)
    known = quantity.xreplace(dict(hints))
    if known.free_symbols:
        missing = ", ".join(sorted(map(str, known.free_symbols)))
        raise ValueError(f"no hint for the size {missing}: give a number for every symbol of the shapes")
    return float(known)
