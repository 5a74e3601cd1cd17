"""The terms that byte counts of a graph are sums of, such as `s0*s1`, and sizes at which to sample such sums.

A byte count is a polynomial in the dynamic sizes, or a sum that also has terms like `s0//2`; whatever they are, the
live bytes at any moment of a step are a linear combination of the terms of all its tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import sympy  # type: ignore[import-untyped]  # has no hints

from autockpt.cost_models.formulas import number_at

Sizes = Mapping[sympy.Symbol, int]
"""A number for every symbol."""
Equalities = Sequence[tuple[sympy.Expr, sympy.Expr]]
"""Expressions that have equal values at all sizes that occur."""
_MOST_TERMS = 12
_MULTIPLES = tuple(map(Fraction, (1, 2, 3, 4)))
_FRACTIONS = (Fraction(1), Fraction(1, 2), Fraction(1, 4), Fraction(1, 8))
_MOST_VARIED = 4
"""Symbols that are varied independently of each other; the others grow with the first."""
CHECKS = 2
"""Samples beyond those that determine a fit, to see whether it holds."""


def terms_of(expressions: Iterable[sympy.Expr], equal: Equalities = ()) -> tuple[sympy.Expr, ...] | None:
    """The constant 1 and every other term; None where there are too many to tell apart by a few samples.

    Of terms that are equal at all sizes that occur, one is taken.
    """
    found = {
        term
        for expression in set(expressions)
        for term in _unified(sympy.expand(expression), equal).as_coefficients_dict()
        if term.free_symbols
    }
    if len(found) >= _MOST_TERMS:
        return None
    return (sympy.Integer(1), *sorted(found, key=str))


def _unified(expression: sympy.Expr, equal: Equalities) -> sympy.Expr:
    for one, other in equal:
        expression = expression.subs(sympy.expand(other), sympy.expand(one))
    return sympy.expand(expression)


def values_at(terms: Sequence[sympy.Expr], sizes: Sizes) -> np.ndarray:
    return np.array([float(number_at(term, sizes)) for term in terms])


def sample_points(
    terms: Sequence[sympy.Expr], hints: Sizes, is_allowed: Callable[[Sizes], bool], equal: Equalities = ()
) -> tuple[Sizes, ...] | None:
    """Sizes that tell all terms apart, and a few more; None where there are no such sizes.

    Whole multiples of the hints: most conditions on sizes, such as divisibility, hold for these too. Where Inductor
    generated code for at most the sizes of this call, as it does for some sums: parts of them.
    """
    scale = values_at(terms, hints)
    if not scale.all():
        return None
    for factors in (_MULTIPLES, _FRACTIONS):
        points = [sizes for sizes in _scaled(hints, factors, equal) if is_allowed(sizes)]
        if points and (chosen := _telling_apart(terms, scale, points)):
            return chosen
    return None


def _telling_apart(terms: Sequence[sympy.Expr], scale: np.ndarray, points: Sequence[Sizes]) -> tuple[Sizes, ...] | None:
    """Each is the point whose row of terms is farthest from those chosen before, so that a fit is well conditioned."""
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


def _scaled(hints: Sizes, scales: Sequence[Fraction], equal: Equalities) -> Iterator[Sizes]:
    """The hints times these numbers, each symbol by its own, but those that follow from others; whole sizes only."""
    following = _following(hints, equal)
    symbols = sorted(hints.keys() - following.keys(), key=str)
    varied = min(len(symbols), _MOST_VARIED)
    for factors in product(scales, repeat=varied):
        padded = [*factors, *[factors[0]] * (len(symbols) - varied)]
        sizes = {symbol: _rational(hints[symbol] * factor) for symbol, factor in zip(symbols, padded, strict=True)}
        sizes |= {symbol: expression.xreplace(sizes) for symbol, expression in following.items()}
        if all(size.is_Integer and size > 0 for size in sizes.values()):
            yield {symbol: int(size) for symbol, size in sizes.items()}


def _rational(number: Fraction) -> sympy.Rational:
    return sympy.Rational(number.numerator, number.denominator)


def _following(hints: Sizes, equal: Equalities) -> dict[sympy.Symbol, sympy.Expr]:
    """Sizes that equalities determine, as expressions in the others: with `s0*s1 = s2*s3`, one of the four."""
    found: dict[sympy.Symbol, sympy.Expr] = {}
    for one, other in equal:
        difference = (one - other).xreplace(found)
        for symbol in sorted(difference.free_symbols & hints.keys(), key=str, reverse=True):
            if difference.has_free(symbol) and len(solved := sympy.solve(difference, symbol)) == 1:
                found = {known: expression.xreplace({symbol: solved[0]}) for known, expression in found.items()}
                found[symbol] = solved[0]
                break
    return found
