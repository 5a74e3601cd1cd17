"""Plans and bounds from the interval program with a link to the host: solve, round, correct by the replay, solve again.

The program decides what is saved, recomputed and offloaded. Which copy runs when, and whether that fits, is left to a
replay of the two copy engines; the other bytes at each moment follow from a replay without copies, which free nothing
else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from autockpt.passes.forecast import Evaluator, HostLink
from autockpt.passes.graph import Floats
from autockpt.passes.intervals.copies import CopyTimes, PassSpans, copy_times, pass_spans
from autockpt.passes.intervals.graph import IntervalGraph
from autockpt.passes.intervals.hosted_program import HostedShares, solve_hosted_shares
from autockpt.passes.intervals.search import saved_names
from autockpt.passes.intervals.values import round_shares
from autockpt.passes.problem import Plan

_ROUNDED_AT = (0.5, 1e-6)
"""Shares of a value, saved and offloaded together, from which it crosses the boundary."""
_LINK_SHARES = (0.9, 0.7, 0.5, 0.3)
"""Of the link that the program may use, one solution each: it moves parts of values, a plan whole ones."""


class HostedIntervals:
    def __init__(self, evaluator: Evaluator, link: HostLink, fastest: Plan) -> None:
        self._evaluator, self._link, self._fastest = evaluator, link, fastest
        self._graph = IntervalGraph(evaluator.problem, evaluator.order)
        self._at_share: dict[float, CopyTimes] = {}

    @cached_property
    def spans(self) -> PassSpans:
        """How long both passes take at most without recomputation."""
        return pass_spans(self._evaluator.problem, self._evaluator.simulator, self._fastest)

    def bound_seconds(self, budget_bytes: int) -> float:
        """Recomputation and waiting that every plan needs which recomputes each value at most once; infinite where none
        fits."""
        slack_bytes = budget_bytes - self._graph.unavoidable_bytes
        found = solve_hosted_shares(self._graph.shortest_intervals, slack_bytes, self._copies(1.0))
        return np.inf if found is None else found.seconds

    def __call__(self, budget_bytes: int) -> Iterator[tuple[Plan, frozenset[str]]]:
        """Plans without copies, each with the values that are to wait on the host."""
        simulator = self._evaluator.simulator
        other_bytes = self._other_bytes_of_fastest
        for share in _LINK_SHARES:
            shares = solve_hosted_shares(self._graph.intervals, budget_bytes - other_bytes, self._copies(share))
            if shares is None:
                # Too much was assumed: halfway back to what every plan holds.
                other_bytes = (other_bytes + self._graph.unavoidable_bytes) / 2
                continue
            rounded = list(self._rounded(shares))
            yield from rounded
            if rounded:
                live_bytes, found = self._graph.live_and_other_bytes(simulator, rounded[0][0])
                other_bytes = np.where(live_bytes > 0, found, other_bytes)

    @cached_property
    def _other_bytes_of_fastest(self) -> Floats:
        return self._graph.live_and_other_bytes(self._evaluator.simulator, self._fastest)[1]

    def _copies(self, share: float) -> CopyTimes:
        """With so much of the link."""
        link = replace(
            self._link,
            out_bytes_per_second=self._link.out_bytes_per_second * share,
            in_bytes_per_second=self._link.in_bytes_per_second * share,
        )
        if share not in self._at_share:
            self._at_share[share] = copy_times(self._evaluator.problem, link, self.spans, self._graph)
        return self._at_share[share]

    def _rounded(self, shares: HostedShares) -> Iterator[tuple[Plan, frozenset[str]]]:
        """With all that crosses by at least half, and with all that crosses at all."""
        graph, crossing = self._graph, shares.saved + shares.offloaded
        on_host = frozenset(graph.names[value] for value in np.flatnonzero(shares.offloaded > shares.saved))
        for least in _ROUNDED_AT:
            assignment = round_shares(graph.intervals, [], np.where(crossing >= least, crossing, 0.0))
            if assignment is not None:
                saved = saved_names(self._evaluator.problem, graph, assignment)
                yield self._evaluator.schedule(saved), on_host & saved
