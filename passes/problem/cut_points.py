"""Sets of values that may be saved together at a cut point of the forward."""

from __future__ import annotations

from autockpt.passes.graph import Crossings, narrow_moments
from autockpt.passes.problem.plan import Problem

_FEW, _MANY = 4, 64
"""Valleys below which a graph has none to speak of; moments that then stand for all."""


def cut_point_values(problem: Problem) -> frozenset[str]:
    """All that crosses some cut_point."""
    return frozenset().union(*saved_cut_points(problem)[0])


def saved_cut_points(problem: Problem) -> tuple[list[frozenset[str]], list[int]]:
    """What crosses each cut_point, and its bytes. A graph without valleys, a plain chain or one whose features all stay in
    use, has a cut_point everywhere."""
    crossings = Crossings(problem.graph)
    moments = narrow_moments(crossings.nbytes.tolist())
    if len(moments) < _FEW:
        step = max(len(crossings.sequence) // _MANY, 1)
        moments = [m for m, value in enumerate(crossings.sequence) if value.owns_bytes][::step]
    found = crossings.at(moments)
    saved = [m for m in moments if found[m] and not found[m] & problem.unsavable]
    return [found[m] for m in saved], [int(crossings.nbytes[m]) for m in saved]
