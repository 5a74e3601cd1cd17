"""Plans below the block floor: few cut_points saved, the others rebuilt from further back, what lies between twice.

With m cut_points saved out of n, the segment between two of them is computed again as a whole when its backward begins,
but only its durable values are held; each block of it is computed once more from there. SavedTensor and held bytes together
are least near m = √n, and so grow no faster than the square root of depth. Where much crosses every moment, as the
skips of a U-Net do, a cut_point is too wide to be saved whole: then every so many of the values that cross any are saved.

The backward of the last part of the forward comes first, when nothing has been rebuilt yet: what is saved there is
gone again before it is in the way. So there are also plans that are nested only up to a border, and richer after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt

from autockpt.passes.graph import JointGraph, Role
from autockpt.passes.planners.schedule import completed
from autockpt.passes.problem import Problem, savable_cut_points

_COUNTS = 8
"""How many numbers of saved cut_points are tried, evenly in the logarithm."""
_BORDERS = (1.0, 0.8, 0.6, 0.4)
"""Shares of the forward before the border."""
_LARGE = 2800
"""Values from which only numbers near the square root are tried, and no borders."""


@dataclass(frozen=True)
class Nest:
    """Not yet a plan: what it keeps, and what it holds once it is rebuilt."""

    saved: frozenset[str]
    durable: frozenset[str]
    is_whole: bool = field(compare=False)
    """Nested from end to end, without a border."""


def nests(problem: Problem, fastest: frozenset[str], lowest_cut: frozenset[str]) -> Iterator[Nest]:
    """Every so many cut_points saved, one of two kinds of durable values between them, the fastest plan after a border."""
    cut_points = savable_cut_points(problem)
    crossing, width = [point.crossing for point in cut_points], [point.nbytes for point in cut_points]
    every = _union(crossing)
    in_order = [value.name for value in problem.graph.values if value.name in every]
    made: set[Nest] = set()
    large = len(problem.graph.values) >= _LARGE
    late = list(_late(problem.graph))[: 1 if large else None]
    for count in _near_root(len(crossing)) if large else _counts(len(crossing)):
        moments = _union(crossing[number] for number in _spread(width, count))
        values = frozenset(in_order[number] for number in _spread([0] * len(in_order), count))
        for outer in (moments, values)[: 1 if large else None]:
            for number, after in enumerate(late):
                saved = completed(problem, (outer - after) | (fastest & after))
                for durable in (every - saved, lowest_cut - saved)[: 1 if large else None]:
                    nest = Nest(saved, durable - frozenset(problem.must_save), is_whole=number == 0)
                    if nest not in made:
                        made.add(nest)
                        yield nest


def _late(graph: JointGraph) -> Iterator[frozenset[str]]:
    """What the forward makes after each border."""
    forward = [v.name for v in graph.values if v.role is Role.FORWARD]
    return (frozenset(forward[round(border * len(forward)) :]) for border in _BORDERS)


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


def _spread(width: Sequence[int], count: int) -> list[int]:
    """So many of them, evenly; near each even place the narrowest."""
    chosen = []
    apart = len(width) / (count + 1)
    for number in range(1, count + 1):
        low, high = round((number - 0.5) * apart), round((number + 0.5) * apart)
        near = range(low, min(max(high, low + 1), len(width)))
        if near:
            chosen.append(min(near, key=width.__getitem__))
    return chosen


def _counts(most: int) -> list[int]:
    return sorted({round(most ** (step / (_COUNTS - 1))) for step in range(_COUNTS)} if most else ())


def _near_root(most: int) -> list[int]:
    return sorted({max(round(sqrt(most) * share), 1) for share in (0.5, 1.0, 2.0)} if most else ())
