"""Plans and bounds from the interval program with a link to the host: solve, round, correct by the replay, solve again.

The program decides what is saved, recomputed and offloaded. Which copy runs when, and whether that fits, is left to a
replay of the two copy engines; the other bytes at each moment follow from a replay without copies, which free nothing
else.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from autockpt.passes.forecast import Evaluator, HostLink
from autockpt.passes.intervals.copies import CopyTimes, PassSpans, copy_times, pass_spans
from autockpt.passes.intervals.graph import IntervalGraph
from autockpt.passes.intervals.hosted_program import HostedShares, solve_hosted_shares
from autockpt.passes.intervals.search import saved_names
from autockpt.passes.intervals.values import round_shares
from autockpt.passes.problem import Plan

_ROUNDED_AT = (0.5, 1e-6)
"""Shares of a value, saved and offloaded together, from which it crosses the boundary."""
_ROUNDS = 2
"""Solutions for one budget, the second corrected by the replay of the first."""


class HostedIntervals:
    def __init__(self, evaluator: Evaluator, link: HostLink, fastest: Plan) -> None:
        self._evaluator, self._link, self._fastest = evaluator, link, fastest
        self._graph = IntervalGraph(evaluator.problem, evaluator.order)

    @cached_property
    def spans(self) -> PassSpans:
        """How long both passes take at most without recomputation."""
        return pass_spans(self._evaluator.problem, self._evaluator.simulator, self._fastest)

    @cached_property
    def _copies(self) -> CopyTimes:
        return copy_times(self._evaluator.problem, self._link, self.spans, self._graph)

    def bound_seconds(self, budget_bytes: int) -> float:
        """Recomputation and waiting that every plan needs which recomputes each value at most once; infinite where none
        fits."""
        slack_bytes = budget_bytes - self._graph.unavoidable_bytes
        found = solve_hosted_shares(self._graph.shortest_intervals, slack_bytes, self._copies)
        return np.inf if found is None else found.seconds

    def __call__(self, budget_bytes: int) -> Iterator[tuple[Plan, frozenset[str]]]:
        """Plans without copies, each with the values that are to wait on the host."""
        simulator = self._evaluator.simulator
        start = other_bytes = self._graph.live_and_other_bytes(simulator, self._fastest)[1]
        for _ in range(_ROUNDS):
            shares = solve_hosted_shares(self._graph.intervals, budget_bytes - other_bytes, self._copies)
            if shares is None:
                # Too much was assumed: halfway back, and at first to what every plan holds.
                start = start if other_bytes is not start else self._graph.unavoidable_bytes
                other_bytes = (other_bytes + start) / 2
                continue
            rounded = list(self._rounded(shares))
            yield from rounded
            if rounded:
                live_bytes, found = self._graph.live_and_other_bytes(simulator, rounded[0][0])
                other_bytes = np.where(live_bytes > 0, found, other_bytes)

    def _rounded(self, shares: HostedShares) -> Iterator[tuple[Plan, frozenset[str]]]:
        """With all that crosses by at least half, and with all that crosses at all."""
        graph, crossing = self._graph, shares.saved + shares.offloaded
        on_host = frozenset(graph.names[value] for value in np.flatnonzero(shares.offloaded > shares.saved))
        for least in _ROUNDED_AT:
            assignment = round_shares(graph.intervals, [], np.where(crossing >= least, crossing, 0.0))
            if assignment is not None:
                saved = saved_names(self._evaluator.problem, graph, assignment)
                yield self._evaluator.schedule(saved), on_host & saved
