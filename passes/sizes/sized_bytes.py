"""Live bytes of a step at every moment, as linear combinations of terms in the sizes, found from a few samples.

A sample is the live bytes at every moment of one replay, or of one dry run, at one choice of sizes. The code that runs
is the same at all sizes, so moment k of one sample is moment k of every other, and its bytes are a sum of the same
tensors. As many samples as there are terms determine the coefficients; two more check them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import sympy  # type: ignore[import-untyped]  # has no hints

from autockpt.passes.sizes.terms import Sizes, values_at

_GRAIN = 2e-5
"""Share of the limit to which the bytes of one term are rounded up: moments that differ by less are one."""
_TOLERANCE = 0.02
"""By how much a sampled peak may exceed the fitted one; the fit is then raised by as much."""
_MOST_MOMENTS = 16
ONE = 10**12
"""All of a limit, in conditions on sizes: their coefficients are whole numbers."""


@dataclass(frozen=True, eq=False)
class SizedBytes:
    """Bytes that are live at the moments of a step, for any sizes."""

    terms: tuple[sympy.Expr, ...]
    """The first is 1."""
    coefficients: np.ndarray
    """One row for each moment, one column for each term."""
    base: np.ndarray
    """Of the terms, at sizes where they were sampled."""

    def peak(self, sizes: Sizes) -> float:
        return float(self._at(sizes).max())

    def at_peak(self, sizes: Sizes) -> sympy.Expr:
        """The live bytes of the moment that is the peak at these sizes."""
        return self._expression(self.coefficients[int(self._at(sizes).argmax())])

    def binding(self, limit_bytes: int) -> tuple[sympy.Expr, ...] | None:
        """Expressions such that, where all are at most `ONE`, all live bytes are within the limit; None for too many.

        What the first moment has beyond `c + a*s0`, a later one may have in its constant, as gradients replace
        activations. Divided by what its constant leaves of the limit, each moment is a row of the shares that its
        terms use; a row that another exceeds in every share never binds.
        """
        left = limit_bytes - self.coefficients[:, :1]
        if (left <= 0).any():
            return None
        shares = self.coefficients[:, 1:] * self.base[1:] / left
        rounded = np.ceil(shares / _GRAIN - 1e-3) * _GRAIN
        undominated: list[np.ndarray] = []
        for row in sorted(np.unique(rounded, axis=0), key=lambda row: -float(row.sum())):
            if not any((row <= other).all() for other in undominated):
                undominated.append(row)
        if len(undominated) > _MOST_MOMENTS:
            return None
        return tuple(self._expression(np.array([0.0, *row * ONE / self.base[1:]])) for row in undominated)

    def _at(self, sizes: Sizes) -> np.ndarray:
        return np.asarray(self.coefficients @ values_at(self.terms, sizes))

    def _expression(self, row: np.ndarray) -> sympy.Expr:
        """With whole numbers, rounded up."""
        return sympy.Add(*(ceil(factor) * term for factor, term in zip(row, self.terms, strict=True)))


def fit(terms: Sequence[sympy.Expr], points: Sequence[Sizes], samples: Sequence[Sequence[int]]) -> SizedBytes | None:
    """The live bytes that these samples at these sizes show, or slightly more; None where no combination fits them."""
    if len({len(sample) for sample in samples}) != 1 or not samples[0]:
        return None
    base = values_at(terms, points[0])
    rows = np.array([values_at(terms, sizes) / base for sizes in points])
    measured = np.array(samples, dtype=float)
    found = np.linalg.lstsq(rows, measured, rcond=None)[0].T
    peaks, fitted_peaks = measured.max(axis=1), (rows @ found.T).max(axis=1)
    if (fitted_peaks <= 0).any() or (raised := max(1.0, float((peaks / fitted_peaks).max()))) > 1 + _TOLERANCE:
        return None
    return SizedBytes(tuple(terms), found * raised / base, base)
