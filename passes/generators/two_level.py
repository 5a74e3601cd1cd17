"""Two-level checkpointing: few cut points saved, the others rebuilt from them, what lies between recomputed twice.

With m of n cut points saved, the segment between two of them is recomputed as a whole when its backward begins, but
only its inner values are held; each block of it is recomputed once more from there. Saved and held bytes together are
least near m = √n, so the minimum peak grows no faster than the square root of depth. Where much crosses every moment,
as the skips of a U-Net do, a cut point is too wide to be saved whole: then some of the crossing values are saved.

The backward of the last part of the forward runs first, when nothing has been rebuilt yet: what is saved there is freed
before it matters. So there are also plans that are two-level up to some position and save as the fastest plan after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt

from autockpt.passes.forecast import Candidate
from autockpt.passes.generators.generator import by_peak
from autockpt.passes.generators.space import SearchSpace
from autockpt.passes.graph import JointGraph, Role
from autockpt.passes.problem import Problem, savable_cut_points, savable_set

TWO_LEVEL = "two-level"
_COUNTS = 8
"""How many numbers of saved cut points are tried, evenly in the logarithm."""
_TWO_LEVEL_SHARES = (1.0, 0.8, 0.6, 0.4)
"""Shares of the forward that are two-level; the rest saves as the fastest plan does."""


@dataclass(frozen=True)
class Shape:
    """A saved set, and the inner values that are held once they are rebuilt."""

    saved: frozenset[str]
    inner: frozenset[str]
    whole: bool = field(compare=False)
    """Two-level from end to end."""


@dataclass(frozen=True)
class TwoLevel:
    """Plans of all shapes, cheapest recomputation first."""

    space: SearchSpace

    @cached_property
    def _shapes(self) -> tuple[Shape, ...]:
        lowest_cut = self.space.hull.cuts[-1].saved
        return tuple(
            shapes(self.space.problem, self.space.fastest_cut.plan.saved, lowest_cut, self.space.effort.two_level_plans)
        )

    def fastest(self) -> None:
        return None

    def within(self, budget_bytes: int, beat_seconds: float) -> Candidate | None:
        """The fastest shape that fits, tried in the order of their estimated seconds."""
        slack_bytes = budget_bytes - self.space.static_bytes
        best: Candidate | None = None
        for estimate, shape in self._estimates(slack_bytes, beat_seconds):
            if estimate >= beat_seconds:
                break
            found = self._candidate(shape)
            if found.peak_bytes <= budget_bytes and found.seconds < beat_seconds:
                best, beat_seconds = found, found.seconds
        return best

    def lowest(self) -> Candidate | None:
        return self._lowest

    @cached_property
    def _lowest(self) -> Candidate | None:
        """No peak is below what is saved and what every plan holds, so most shapes need no replay."""
        evaluator, best = self.space.evaluator, None
        whole = [shape for shape in self._shapes if shape.whole]
        saved_bytes = [evaluator.added_bytes(shape.saved) for shape in whole]
        for number in sorted(range(len(whole)), key=saved_bytes.__getitem__):
            if best and self.space.static_bytes + saved_bytes[number] > best.peak_bytes:
                break
            found = self._candidate(whole[number])
            best = min(best or found, found, key=by_peak)
        return best

    def explore(self) -> None:
        """Evaluate all whole shapes."""
        for shape in self._shapes:
            if shape.whole:
                self._candidate(shape)

    def _estimates(self, slack_bytes: int, beat_seconds: float) -> list[tuple[float, Shape]]:
        """Shapes whose saved bytes fit and whose bound is below `beat_seconds`, with their estimated step seconds."""
        evaluator, found = self.space.evaluator, []
        for number, shape in enumerate(self._shapes):
            nbytes = evaluator.added_bytes(shape.saved)
            if nbytes > slack_bytes or self.space.step_seconds(self.space.hull.bound_seconds(nbytes)) >= beat_seconds:
                continue
            recompute = evaluator.simulator.recompute_seconds(evaluator.schedule(shape.saved, shape.inner))
            found.append((self.space.step_seconds(recompute), number))
        return [(estimate, self._shapes[number]) for estimate, number in sorted(found)]

    def _candidate(self, shape: Shape) -> Candidate:
        return self.space.evaluator.saving(shape.saved, TWO_LEVEL, shape.inner)


def shapes(
    problem: Problem, fastest: frozenset[str], lowest_cut: frozenset[str], every_shape: bool = True
) -> Iterator[Shape]:
    """Every so many cut points saved, two choices of inner values between them, the fastest plan's saved set after."""
    cut_points = savable_cut_points(problem)
    crossing, width = [point.crossing for point in cut_points], [point.nbytes for point in cut_points]
    every = _union(crossing)
    in_order = [value.name for value in problem.graph.values if value.name in every]
    limit = None if every_shape else 1
    seen: set[Shape] = set()
    for count in _counts(len(crossing)) if every_shape else _near_square_root(len(crossing)):
        at_cut_points = _union(crossing[number] for number in _spread(width, count))
        by_value = frozenset(in_order[number] for number in _spread([0] * len(in_order), count))
        for outer in (at_cut_points, by_value)[:limit]:
            for number, after in enumerate(list(_last_parts(problem.graph))[:limit]):
                saved = savable_set(problem, (outer - after) | (fastest & after))
                for inner in (every - saved, lowest_cut - saved)[:limit]:
                    shape = Shape(saved, inner - frozenset(problem.must_save), whole=number == 0)
                    if shape not in seen:
                        seen.add(shape)
                        yield shape


def _last_parts(graph: JointGraph) -> Iterator[frozenset[str]]:
    """Forward values after each share of the forward."""
    forward = [v.name for v in graph.values if v.role is Role.FORWARD]
    return (frozenset(forward[round(share * len(forward)) :]) for share in _TWO_LEVEL_SHARES)


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


def _spread(width: Sequence[int], count: int) -> list[int]:
    """So many positions, evenly spaced, each moved to the narrowest place near it."""
    chosen = []
    distance = len(width) / (count + 1)
    for number in range(1, count + 1):
        low, high = round((number - 0.5) * distance), round((number + 0.5) * distance)
        near = range(low, min(max(high, low + 1), len(width)))
        if near:
            chosen.append(min(near, key=width.__getitem__))
    return chosen


def _counts(most: int) -> list[int]:
    return sorted({round(most ** (step / (_COUNTS - 1))) for step in range(_COUNTS)} if most else ())


def _near_square_root(most: int) -> list[int]:
    return sorted({max(round(sqrt(most) * share), 1) for share in (0.5, 1.0, 2.0)} if most else ())
