"""The priced cut: the exact optimum of `seconds + price × bytes saved`, as a minimum cut.

For every forward value v two nodes. Let the sink's side be what is at hand in the backward.

    source -> v_in     seconds to recompute v      cut: v is recomputed; infinite where it must not be
    v_in   -> v_out    price × bytes of v, traffic cut: v is saved; infinite where it cannot be
    u_out  -> v_in     infinite, for every read    what is recomputed has its inputs at hand
    v_out  -> sink     infinite                    where the backward reads v

Values that only the backward asks for run once either way, so recomputing them costs nothing more.

Every price that matters: the lower hull of seconds over bytes saved, and the bound that it is.

At the turning point every saved byte is live, and what is not saved but needed runs at least once more. For any price p,
`min over all plans of (seconds + p × bytes) - p × room` bounds the seconds of every plan that has `room` bytes there,
however it orders, repeats or holds what it recomputes. The best of these bounds over all prices is the hull of the
cuts at `room`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
from ortools.graph.python import max_flow

from autockpt.passes.forecast import Candidate
from autockpt.passes.graph import Role
from autockpt.passes.problem import Problem

_RESOLUTION = 10**12
_INFINITE = 2**60


class NoCut(Exception):
    """Something that may be neither saved nor recomputed stands between forward and backward."""


class PricedCut:
    """Cuts of one problem at many prices; the graph is built once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        graph = problem.graph
        self._values = [v for v in graph.values if v.role not in (Role.BACKWARD, Role.TANGENT)]
        number = {value.name: position for position, value in enumerate(self._values)}
        count = len(self._values)
        self._source, self._sink = 2 * count, 2 * count + 1
        every = np.arange(count)
        reads = [(number[name], number[value.name]) for value in self._values for name in value.inputs]
        self._ties = np.array(sorted(number[name] for name in problem.needed_by_backward), dtype=np.int64)
        pairs = np.array(reads, dtype=np.int64).reshape(-1, 2)
        self._tails = np.concatenate([np.full(count, self._source), 2 * every, 2 * pairs[:, 0] + 1, 2 * self._ties + 1])
        self._heads = np.concatenate([2 * every, 2 * every + 1, 2 * pairs[:, 1], np.full(len(self._ties), self._sink)])
        self._seconds = np.array([self._recompute_seconds(value.name) for value in self._values])
        self._bytes = np.array([self._saved_bytes(value.name) for value in self._values])
        self._keep = np.array([problem.save_seconds.get(value.name, 0.0) for value in self._values])
        self._total = float(self._bytes[np.isfinite(self._bytes)].sum())

    @property
    def seconds_per_byte(self) -> float:
        """All that could be recomputed over all that could be saved."""
        return float(self._seconds[np.isfinite(self._seconds)].sum()) / max(self._total, 1.0)

    def _recompute_seconds(self, name: str) -> float:
        if name in self._problem.must_save or self._problem.graph.by_name[name].role.is_graph_input:
            return np.inf
        return self._problem.seconds[name] if name in self._problem.graph.required_forward else 0.0

    def _saved_bytes(self, name: str) -> float:
        value = self._problem.graph.by_name[name]
        if value.role.is_graph_input:
            return 0.0
        if name in self._problem.unsavable:
            return np.inf
        return float(self._problem.graph.bytes_of(name)) if name not in self._problem.graph.output_storages else 0.0

    def saved(self, price: float, late_price: float | None = None, border: float = 0.5) -> frozenset[str]:
        """The values to keep when a byte costs this many seconds; another price may hold after a border.

        The border is a share of all the bytes that could be saved, in order of the forward.
        """
        if not len(self._ties):
            return frozenset()
        prices = np.full(len(self._bytes), price)
        if late_price is not None:
            prices[np.cumsum(np.where(np.isfinite(self._bytes), self._bytes, 0.0)) > border * self._total] = late_price
        keeping = np.full(len(self._bytes), np.inf)
        np.multiply(self._bytes, prices, out=keeping, where=np.isfinite(self._bytes))
        keeping += self._keep
        costs = np.concatenate([self._seconds, keeping])
        finite = costs[np.isfinite(costs)]
        scale = _RESOLUTION / max(float(finite.sum()), 1e-30)
        capacities = np.full(len(self._tails), _INFINITE, dtype=np.int64)
        # One more than rounding gives: nothing is free, so among equals the cut with fewer edges wins.
        capacities[: len(costs)][np.isfinite(costs)] = np.rint(finite * scale).astype(np.int64) + 1
        flow = max_flow.SimpleMaxFlow()
        flow.add_arcs_with_capacity(self._tails, self._heads, capacities)
        flow.solve(self._source, self._sink)
        if flow.optimal_flow() >= _INFINITE:
            raise NoCut("a value can be neither saved nor recomputed")
        reached = np.zeros(2 * len(self._values) + 2, dtype=bool)
        reached[flow.get_source_side_min_cut()] = True
        crossing = reached[0:-2:2] & ~reached[1:-2:2]
        return frozenset(
            value.name
            for value, crosses in zip(self._values, crossing, strict=True)
            if crosses and not value.role.is_graph_input
        )


_STEEP = 1000.0
"""At so many times the average seconds per byte nothing is saved but what is tiny or must_save."""
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
        # From nothing upwards: even then what is dear to keep, in traffic, is not saved.
        pending = [(self._at(0.0), self._at(steepest))]
        while pending and len(self._probes) < most:
            # The widest first: a large graph is not cut at every price.
            more, less = pending.pop(max(range(len(pending)), key=lambda n: _width(*pending[n])))
            if more is less or _width(more, less) <= 0:
                continue
            between = self._at(_slope(more, less))
            if between is not more and between is not less:
                pending += [(more, between), (between, less)]
        self.cuts = sorted(self._found.values(), key=lambda c: (c.seconds, c.saved_bytes))

    def _at(self, price: float) -> Candidate:
        saved = self._cut.saved(price)
        if saved not in self._found:
            self._found[saved] = self._make(saved)
        self._probes[price] = self._found[saved]
        return self._found[saved]

    def bound_seconds(self, room: float) -> float:
        """No plan with this much room at the turning point has less; infinite where there is none at all."""
        if room < 0:
            return inf
        lines = (cut.seconds + price * (cut.saved_bytes - room) for price, cut in self._probes.items())
        return max(self.cuts[0].seconds, *lines)


def _width(more: Candidate, less: Candidate) -> int:
    return more.saved_bytes - less.saved_bytes


def _slope(more: Candidate, less: Candidate) -> float:
    """Seconds that a byte less costs between the two."""
    return (less.seconds - more.seconds) / max(more.saved_bytes - less.saved_bytes, 1)
