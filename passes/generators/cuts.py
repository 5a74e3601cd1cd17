"""Minimum cuts of the forward graph at prices for a saved byte, and the bound on recomputation that they give.

For every forward value v the flow network has two nodes. The sink's side holds what is available in the backward.

    source -> v_in     seconds to recompute v      cut: v is recomputed; infinite where it must be saved
    v_in   -> v_out    price × bytes of v          cut: v is saved; infinite where it cannot be saved
    u_out  -> v_in     infinite, for every read    a recomputed value has its inputs available
    v_out  -> sink     infinite                    where the backward reads v

Values that only the backward reads run once in any plan, so recomputing them costs nothing more.

A cut at price p minimises `recompute seconds + p × saved bytes` over all saved sets. At the boundary between forward
and backward every saved byte is live, and what is needed but not saved runs at least once more. So for any p,
`min (seconds + p × bytes) - p × slack` bounds the recompute seconds of every plan with `slack` bytes there, however it
orders, repeats or holds recomputations. The best of these bounds is the lower hull of all cuts, taken at `slack`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from ortools.graph.python import max_flow

from autockpt.passes.graph import Role
from autockpt.passes.problem import Problem

_RESOLUTION = 10**12
_INFINITE = 2**60
_STEEPEST = 1000.0
"""Multiple of the average seconds per byte at which nothing is saved but tiny and must-save values."""


class NoCut(Exception):
    """A value that can be neither saved nor recomputed separates forward and backward."""


@dataclass(frozen=True)
class Cut:
    """A saved set that is optimal for some price of a byte."""

    saved: frozenset[str]
    saved_bytes: int
    seconds: float
    """Of recomputing, once, all that is needed and not saved."""


class CutHull:
    """The cuts at all prices that matter, at most `prices` of them, and the bound they form."""

    def __init__(self, problem: Problem, prices: float = inf) -> None:
        self._network = _CutNetwork(problem)
        self._found: dict[frozenset[str], Cut] = {}
        self._at_price: dict[float, Cut] = {}
        pending = [(self._cut(0.0), self._cut(_STEEPEST * self._network.seconds_per_byte))]
        while pending and len(self._at_price) < prices:
            # Widest interval first, so that a limited number of prices covers the whole range.
            more, less = pending.pop(max(range(len(pending)), key=lambda n: _width(*pending[n])))
            if more is less or _width(more, less) <= 0:
                continue
            between = self._cut((less.seconds - more.seconds) / max(_width(more, less), 1))
            if between is not more and between is not less:
                pending += [(more, between), (between, less)]
        self.cuts = sorted(self._found.values(), key=lambda cut: (cut.seconds, cut.saved_bytes))

    def _cut(self, price: float) -> Cut:
        saved = self._network.saved_at(price)
        if saved not in self._found:
            self._found[saved] = self._network.cut(saved)
        self._at_price[price] = self._found[saved]
        return self._found[saved]

    def bound_seconds(self, slack_bytes: float) -> float:
        """Least recompute seconds of any plan with so many bytes at the boundary; infinite where no plan has so few."""
        if slack_bytes < 0:
            return inf
        lines = (cut.seconds + price * (cut.saved_bytes - slack_bytes) for price, cut in self._at_price.items())
        return max(0.0, *lines)


def saved_at(problem: Problem, price: float) -> frozenset[str]:
    """The values to save where a byte costs this many seconds."""
    return _CutNetwork(problem).saved_at(price)


def least_saved_bytes(problem: Problem) -> int:
    """Bytes of the saved set where a byte costs more than any recomputation."""
    network = _CutNetwork(problem)
    return network.cut(network.saved_at(_STEEPEST * network.seconds_per_byte)).saved_bytes


class _CutNetwork:
    """The flow network of one problem; capacities change with the price, arcs do not."""

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

    @property
    def seconds_per_byte(self) -> float:
        """All recomputable seconds over all savable bytes."""
        total = float(self._bytes[np.isfinite(self._bytes)].sum())
        return float(self._seconds[np.isfinite(self._seconds)].sum()) / max(total, 1.0)

    def _recompute_seconds(self, name: str) -> float:
        if name in self._problem.must_save or self._problem.graph.by_name[name].role.is_graph_input:
            return inf
        return self._problem.seconds[name] if name in self._problem.graph.required_forward else 0.0

    def _saved_bytes(self, name: str) -> float:
        value = self._problem.graph.by_name[name]
        if value.role.is_graph_input:
            return 0.0
        if name in self._problem.unsavable:
            return inf
        return float(self._problem.graph.bytes_of(name)) if name not in self._problem.graph.output_storages else 0.0

    def cut(self, saved: frozenset[str]) -> Cut:
        """This saved set with its bytes and the seconds of one recomputation of the rest."""
        graph = self._problem.graph
        nbytes = sum(graph.bytes_of(name) for name in saved if name not in graph.output_storages)
        needed: set[str] = set()
        stack = [name for name in self._problem.needed_by_backward if name not in saved]
        while stack:
            name = stack.pop()
            if name not in needed and not graph.by_name[name].role.is_graph_input:
                needed.add(name)
                stack.extend(source for source in graph.by_name[name].inputs if source not in saved)
        seconds = sum(self._problem.seconds[name] for name in sorted(needed & graph.required_forward))
        return Cut(saved, nbytes, seconds)

    def saved_at(self, price: float) -> frozenset[str]:
        """The values to save where a byte costs this many seconds."""
        if not len(self._ties):
            return frozenset()
        save = np.where(np.isfinite(self._bytes), self._bytes, 0.0) * price
        save[~np.isfinite(self._bytes)] = inf
        costs = np.concatenate([self._seconds, save])
        finite = costs[np.isfinite(costs)]
        scale = _RESOLUTION / max(float(finite.sum()), 1e-30)
        capacities = np.full(len(self._tails), _INFINITE, dtype=np.int64)
        # One more than rounding gives: no arc is free, so among equal cuts the one with fewer arcs wins.
        capacities[: len(costs)][np.isfinite(costs)] = np.rint(finite * scale).astype(np.int64) + 1
        flow = max_flow.SimpleMaxFlow()
        flow.add_arcs_with_capacity(self._tails, self._heads, capacities)
        if (status := flow.solve(self._source, self._sink)) != flow.OPTIMAL:
            raise NoCut(f"the maximum flow was not found: {status}")
        if flow.optimal_flow() >= _INFINITE:
            raise NoCut(_stuck(self._problem))
        reached = np.zeros(2 * len(self._values) + 2, dtype=bool)
        reached[flow.get_source_side_min_cut()] = True
        crossing = reached[0:-2:2] & ~reached[1:-2:2]
        return frozenset(
            value.name
            for value, crosses in zip(self._values, crossing, strict=True)
            if crosses and not value.role.is_graph_input
        )


def _stuck(problem: Problem) -> str:
    """A sentence that names a value that the backward needs and that can be neither saved nor recomputed."""
    seen: set[str] = set()
    stack = sorted(problem.needed_by_backward)
    while stack:
        value = problem.graph.by_name[stack.pop()]
        if value.name in seen or value.role.is_graph_input or value.name not in problem.unsavable:
            continue
        seen.add(value.name)
        if reason := problem.must_save.get(value.name):
            where = f" ({value.source})" if str(value.source) else ""
            return (
                f"`{value.name}` of {value.operator}{where} has no bytes of its own to save and may not be recomputed "
                f"({reason}); return a clone of it, or vouch for the operator"
            )
        stack.extend(value.inputs)
    return "a value can be neither saved nor recomputed"


def _width(more: Cut, less: Cut) -> int:
    return more.saved_bytes - less.saved_bytes
