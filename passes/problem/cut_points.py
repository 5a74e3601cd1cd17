"""Cut points of the forward at which a plan may save everything that crosses."""

from __future__ import annotations

from dataclasses import replace

from autockpt.passes.graph import CutPoint, ForwardLiveness, local_minima
from autockpt.passes.problem.plan import Problem

_FEW = 4
"""With fewer local minima than this, a graph is treated as one without blocks."""
_MANY = 64
"""Cut points of a graph without blocks, at most about this many."""


def savable_cut_points(problem: Problem) -> tuple[CutPoint, ...]:
    """Local minima of the forward's live bytes whose crossing storages, but for constants, may all be saved.

    A graph with hardly any minima, a plain chain or one in which all features stay in use to the end, gets evenly
    spaced moments instead.
    """
    liveness = ForwardLiveness(problem.graph)
    moments = local_minima(liveness.nbytes.tolist())
    if len(moments) < _FEW:
        step = max(len(liveness.operations) // _MANY, 1)
        moments = [moment for moment, value in enumerate(liveness.operations) if value.owns_bytes][::step]
    points = [replace(p, crossing=p.crossing - problem.constants) for p in liveness.cut_points(moments)]
    return tuple(point for point in points if not point.crossing & problem.unsavable)


def cut_point_values(problem: Problem) -> frozenset[str]:
    """All values that cross some savable cut point."""
    return frozenset().union(*(point.crossing for point in savable_cut_points(problem)))
