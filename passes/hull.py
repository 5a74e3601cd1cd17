"""Every price that matters: the lower hull of seconds over bytes kept, and the bound that it is.

At the turning point every kept byte is live, and what is not kept but needed runs at least once more. For any price p,
`min over all plans of (seconds + p × bytes) - p × room` bounds the seconds of every plan that has `room` bytes there,
however it orders, repeats or holds what it recomputes. The best of these bounds over all prices is the hull of the
cuts at `room`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from autockpt.passes.candidate import Candidate
from autockpt.passes.min_cut import PricedCut
from autockpt.passes.plan import Problem

_STEEP = 1000.0
"""At so many times the average seconds per byte nothing is kept but what is tiny or pinned."""


class Hull:
    def __init__(self, problem: Problem, make: Callable[[frozenset[str]], Candidate]) -> None:
        self._floor_price = problem.seconds_per_byte
        cut = PricedCut(problem)
        steepest = max(_STEEP * cut.seconds_per_byte, 2 * self._floor_price)
        found: dict[frozenset[str], Candidate] = {}

        def at(price: float) -> Candidate:
            kept = cut.kept(price)
            if kept not in found:
                found[kept] = make(kept)
            return found[kept]

        # From the price of memory traffic upwards: below it, keeping more would be no faster.
        pending = [(at(self._floor_price), at(steepest))]
        while pending:
            more, less = pending.pop()
            if more is less or more.kept_bytes <= less.kept_bytes:
                continue
            between = at(self._floor_price + _slope(more, less))
            if between is not more and between is not less:
                pending += [(more, between), (between, less)]
        self.cuts = sorted(found.values(), key=lambda c: (c.seconds, c.kept_bytes))

    def bound_seconds(self, room: float) -> float:
        """No plan with this much room at the turning point has less; infinite where no cut is that small."""
        if room >= self.cuts[0].kept_bytes:
            return self.cuts[0].seconds
        for more, less in zip(self.cuts, self.cuts[1:], strict=False):
            if less.kept_bytes <= room < more.kept_bytes:
                return less.seconds - (room - less.kept_bytes) * _slope(more, less)
        # Smaller than the smallest cut that was looked for: what lies beyond is not known, only that it costs more.
        return self.cuts[-1].seconds if room >= 0 else inf


def _slope(more: Candidate, less: Candidate) -> float:
    """Seconds that a byte less costs between the two."""
    return (less.seconds - more.seconds) / max(more.kept_bytes - less.kept_bytes, 1)
