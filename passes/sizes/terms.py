"""The terms that byte counts of a graph are sums of, such as `s0*s1`, and sizes at which to sample such sums.

A byte count is a polynomial in the dynamic sizes, or a sum that also has terms like `s0//2`; whatever they are, the
live bytes at any moment of a step are a linear combination of the terms of all its tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product

import numpy as np
import sympy  # type: ignore[import-untyped]  # has no hints

from autockpt.cost_models.formulas import number_at

Sizes = Mapping[sympy.Symbol, int]
"""A number for every symbol."""
_MOST_TERMS = 12
_MULTIPLES = (1, 2, 3, 4)
_MOST_VARIED = 3
"""Symbols that are varied independently of each other; the others grow with the first."""
CHECKS = 2
"""Samples beyond those that determine a fit, to see whether it holds."""


def terms_of(expressions: Iterable[sympy.Expr]) -> tuple[sympy.Expr, ...] | None:
    """The constant 1 and every other term; None where there are too many to tell apart by a few samples."""
    found = {
        term
        for expression in set(expressions)
        for term in sympy.expand(expression).as_coefficients_dict()
        if term.free_symbols
    }
    if len(found) >= _MOST_TERMS:
        return None
    return (sympy.Integer(1), *sorted(found, key=str))


def values_at(terms: Sequence[sympy.Expr], sizes: Sizes) -> np.ndarray:
    return np.array([float(number_at(term, sizes)) for term in terms])


def sample_points(
    terms: Sequence[sympy.Expr], hints: Sizes, is_allowed: Callable[[Sizes], bool]
) -> tuple[Sizes, ...] | None:
    """Sizes from the hints upwards that tell all terms apart, and a few more; None where there are no such sizes.

    Whole multiples of the hints: most conditions on sizes, such as divisibility, hold for these too. Each point is the
    one whose row of terms is farthest from the rows chosen before, so that the fit is well conditioned.
    """
    scale = values_at(terms, hints)
    if not scale.all():
        return None
    points = [sizes for sizes in _multiples(hints) if is_allowed(sizes)]
    rows = np.array([values_at(terms, sizes) / scale for sizes in points])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    left, chosen = rows.copy(), []
    for _ in terms:
        lengths = np.linalg.norm(left, axis=1)
        number = int(lengths.argmax())
        if lengths[number] < 1e-6:
            return None
        direction = left[number] / lengths[number]
        left -= np.outer(left @ direction, direction)
        chosen.append(number)
    others = [number for number in range(len(points)) if number not in chosen]
    return tuple(points[number] for number in [*chosen, *others[-CHECKS:]])


def _multiples(hints: Sizes) -> list[Sizes]:
    """The hints times small whole numbers, each symbol by its own."""
    symbols = sorted(hints, key=str)
    varied = min(len(symbols), _MOST_VARIED)
    found: list[Sizes] = []
    for factors in product(_MULTIPLES, repeat=varied):
        padded = [*factors, *[factors[0]] * (len(symbols) - varied)]
        found.append({symbol: hints[symbol] * factor for symbol, factor in zip(symbols, padded, strict=True)})
    return found
