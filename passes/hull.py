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
_LARGE, _PROBES = 2800, 7
"""Values from which a graph is cut at most at so many prices."""


class Hull:
    def __init__(self, problem: Problem, make: Callable[[frozenset[str]], Candidate]) -> None:
        self._make = make
        self._cut = PricedCut(problem)
        self._found: dict[frozenset[str], Candidate] = {}
        self._probes: dict[float, Candidate] = {}
        steepest = max(_STEEP * self._cut.seconds_per_byte, 2 * problem.seconds_per_byte)
        most = _PROBES if len(problem.graph.values) >= _LARGE else inf
        # From nothing upwards: even then what is dear to keep, in traffic, is not kept.
        pending = [(self._at(0.0), self._at(steepest))]
        while pending and len(self._probes) < most:
            # The widest first: a large graph is not cut at every price.
            more, less = pending.pop(max(range(len(pending)), key=lambda n: _width(*pending[n])))
            if more is less or _width(more, less) <= 0:
                continue
            between = self._at(_slope(more, less))
            if between is not more and between is not less:
                pending += [(more, between), (between, less)]
        self.cuts = sorted(self._found.values(), key=lambda c: (c.seconds, c.kept_bytes))

    def _at(self, price: float) -> Candidate:
        kept = self._cut.kept(price)
        if kept not in self._found:
            self._found[kept] = self._make(kept)
        self._probes[price] = self._found[kept]
        return self._found[kept]

    def bound_seconds(self, room: float) -> float:
        """No plan with this much room at the turning point has less; infinite where there is none at all."""
        if room < 0:
            return inf
        lines = (cut.seconds + price * (cut.kept_bytes - room) for price, cut in self._probes.items())
        return max(self.cuts[0].seconds, *lines)


def _width(more: Candidate, less: Candidate) -> int:
    return more.kept_bytes - less.kept_bytes


def _slope(more: Candidate, less: Candidate) -> float:
    """Seconds that a byte less costs between the two."""
    return (less.seconds - more.seconds) / max(more.kept_bytes - less.kept_bytes, 1)
