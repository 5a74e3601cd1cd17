"""The interval program with a link to the host: save, recompute or offload every value, as a linear program.

With `o` offloaded beside the `s` and `r` of `program`, bytes moved by the link as a flow, and `w` seconds of waiting:

    minimise   sum recompute_seconds[v] r[v] + sum w[k]
    r[v] + s[v] + o[v] >= 1                 where the backward reads v
    r[v] <= r[u] + s[u] + o[u]              where v is computed from u
    held[k] - gone[k] <= slack_bytes[k]     held: all s and o whose interval contains moment k
    sum nbytes[v] o[v] <= host_bytes

In the forward, `gone` are bytes that were copied out and are not read any more: at most the o computed so far, at most
those read for the last time, and from one moment to the next at most what the link copies in the time between and the
waiting. At the end everything offloaded is gone. In the backward they are bytes whose copy in has not started: at most
those not read yet, and all of them have to be copied before they are read, one moment's time after the other; time for
recomputation counts as time for copies. Both directions have constraints of their own, and no copy needs a moment of
its own: `gone` is a sum over values. So the program is a relaxation of every plan with copies, and its optimum is a
lower bound; which copy runs when is decided by an exact replay.

Only moments where little is free are posed, the same number in both passes. To leave some out only lowers the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from autockpt.passes.graph import Booleans, Floats, Integers
from autockpt.passes.intervals.copies import CopyTimes
from autockpt.passes.intervals.highs import solve_linear
from autockpt.passes.intervals.linear import Constraints, LinearProgram
from autockpt.passes.intervals.values import Intervals

_MOST_MOMENTS = 32
"""Of one pass."""
_SCALE = 1e3
"""Of the largest coefficients, far above the solver's tolerances."""


@dataclass(frozen=True, eq=False)
class HostedShares:
    """An optimum of the linear program: how much of each value is saved and offloaded, 0 to 1."""

    saved: Floats
    offloaded: Floats
    seconds: float
    """Of recomputation and waiting: no plan of the class takes less."""


def solve_hosted_shares(intervals: Intervals, slack_bytes: Floats, copies: CopyTimes) -> HostedShares | None:
    """`slack_bytes` at each moment, of both passes; None where the constraints have no solution."""
    posed = _Posed(intervals, copies, float(np.abs(slack_bytes).max(initial=1.0)))
    boundary = len(copies.starts[0]) - 1
    posed.add_values()
    posed.add_forward(slack_bytes[:boundary])
    posed.add_backward(slack_bytes[boundary:], boundary)
    solution = solve_linear(posed.program)
    if solution is None:
        return None
    saved, offloaded = (np.zeros(intervals.count) for _ in range(2))
    saved[posed.values] = solution.values[posed.saved]
    offloaded[posed.values] = solution.values[posed.offloaded]
    return HostedShares(saved, offloaded, solution.objective / posed.seconds_scale)


class _Posed:
    """Variables r, s and o of the values that matter, then flows and seconds, each in a unit of its own."""

    def __init__(self, intervals: Intervals, copies: CopyTimes, most_bytes: float) -> None:
        self._intervals, self._copies = intervals, copies
        self.values = np.flatnonzero(intervals.relevant)
        size = self.values.size
        self.recomputed, self.saved, self.offloaded = (np.arange(size) + size * part for part in range(3))
        seconds, nbytes = intervals.recompute_seconds[self.values], intervals.nbytes[self.values]
        # Values that may be neither saved nor offloaded have no bytes of their own here.
        self._nbytes = np.where(np.isinf(nbytes), 0.0, nbytes)
        total = float(np.where(np.isinf(seconds), 0.0, seconds).sum()) + float(copies.starts[0][-1])
        self.seconds_scale = _SCALE / max(total, 1e-300)
        self._bytes_scale = _SCALE / max(most_bytes, float(self._nbytes.max(initial=0.0)), 1.0)
        may = copies.may_offload[self.values] & np.isfinite(nbytes)
        most = np.concatenate([np.isfinite(seconds), np.isfinite(nbytes), may]).astype(float)
        self._most: list[float] = most.tolist()
        self._cost: list[float] = [0.0] * (3 * size)
        self._cost[:size] = np.where(np.isinf(seconds), 0.0, seconds * self.seconds_scale).tolist()
        self._rows = Constraints()

    @property
    def program(self) -> LinearProgram:
        cost = np.array(self._cost)
        return LinearProgram(cost, np.zeros(len(cost)), np.array(self._most), self._rows)

    def _new(self, cost: float = 0.0) -> int:
        self._most.append(inf)
        self._cost.append(cost)
        return len(self._cost) - 1

    def add_values(self) -> None:
        """What the backward needs is there, and so is what a recomputation reads; the host has room."""
        intervals, columns = self._intervals, np.column_stack([self.recomputed, self.saved, self.offloaded])
        self._rows.add_each(columns[intervals.needed_by_backward[self.values]], [1.0] * 3, low=1.0)
        position = np.full(intervals.count, -1)
        position[self.values] = np.arange(self.values.size)
        source, target = intervals.reads[:, 0], intervals.reads[:, 1]
        matters = (position[target] >= 0) & ~intervals.free_to_save[source]
        matters &= np.isfinite(intervals.recompute_seconds[target])
        pairs = np.column_stack([columns[position[source[matters]]], self.recomputed[position[target[matters]]]])
        self._rows.add_each(pairs, [1.0, 1.0, 1.0, -1.0], low=0.0)
        self._rows.add(
            self.offloaded.tolist(), self._scaled().tolist(), high=self._copies.host_bytes * self._bytes_scale
        )

    def add_forward(self, slack_bytes: Floats) -> None:
        copies, first = self._copies, self._intervals.first_moment[self.values]
        made = copies.made[self.values]
        starts, rate = copies.starts[0], copies.link.out_bytes_per_second
        waits, free = [], []
        held, read, ready, copied, at = self._new(), self._new(), self._new(), self._new(), -1
        self._fix_to_zero(held, read, ready, copied)
        for moment in (*_tightest(slack_bytes), len(slack_bytes)):
            entering = (first > at) & (first <= moment)
            held = self._sum(held, entering, self.saved, self.offloaded)
            read = self._sum(read, entering, self.offloaded)
            # The copy starts behind the operation that computes the value.
            ready = self._sum(ready, (made >= at) & (made < moment) if at >= 0 else made < moment, self.offloaded)
            before, copied = copied, self._new()
            waits.append(self._new(self._seconds_cost))
            free.append(self._new())
            self._rows.add([copied, ready], [1.0, -1.0], high=0.0)
            self._add_flow(copied, before, waits[-1], free[-1], float(starts[moment] - starts[max(at, 0)]), rate)
            if moment < len(slack_bytes):
                gone = self._new()
                self._rows.add([gone, read], [1.0, -1.0], high=0.0)
                self._rows.add([gone, copied], [1.0, -1.0], high=0.0)
                self._rows.add([held, gone], [1.0, -1.0], high=float(slack_bytes[moment]) * self._bytes_scale)
            at = moment
        # All of it has left at the end.
        self._rows.add([copied, ready], [1.0, -1.0], low=0.0)
        self._limit_free(free, copies.extra_seconds[0], recomputation=False)
        self._limit_latency(copies.out_seconds, waits, free, float(starts[-1]))

    def add_backward(self, slack_bytes: Floats, boundary: int) -> None:
        """From the end to the boundary: what is to be copied after a moment."""
        copies, last = self._copies, self._intervals.last_moment[self.values] - boundary
        deadline = copies.deadline[self.values] - boundary
        starts, rate = copies.starts[1], copies.link.in_bytes_per_second
        waits, free = [], []
        held, unread, needed, left, at = self._new(), self._new(), self._new(), self._new(), len(slack_bytes)
        self._fix_to_zero(held, unread, needed, left)
        for moment in (*reversed(_tightest(slack_bytes)), -1):
            entering = (last < at) & (last >= moment)
            held = self._sum(held, entering, self.saved, self.offloaded)
            unread = self._sum(unread, entering, self.offloaded)
            needed = self._sum(needed, (deadline < at) & (deadline >= moment), self.offloaded)
            after, left = left, self._new()
            waits.append(self._new(self._seconds_cost))
            free.append(self._new())
            self._rows.add([left, needed], [1.0, -1.0], high=0.0)
            self._add_flow(left, after, waits[-1], free[-1], float(starts[at] - starts[max(moment, 0)]), rate)
            if moment >= 0:
                gone = self._new()
                self._rows.add([gone, unread], [1.0, -1.0], high=0.0)
                self._rows.add([gone, left], [1.0, -1.0], high=0.0)
                self._rows.add([held, gone], [1.0, -1.0], high=float(slack_bytes[moment]) * self._bytes_scale)
            at = moment
        # All of it comes back.
        self._rows.add([left, needed], [1.0, -1.0], low=0.0)
        self._limit_free(free, copies.extra_seconds[1], recomputation=True)
        self._limit_latency(copies.in_seconds, waits, free, float(starts[-1]))

    @property
    def _seconds_cost(self) -> float:
        """Seconds of flows are posed in the unit of the objective."""
        return 1.0

    def _scaled(self) -> Floats:
        return self._nbytes * self._bytes_scale

    def _fix_to_zero(self, *variables: int) -> None:
        for variable in variables:
            self._most[variable] = 0.0

    def _sum(self, before: int, chosen: Booleans, *kinds: Integers) -> int:
        """A variable for the bytes before and those of the chosen values."""
        total = self._new()
        terms = np.concatenate([kind[chosen] for kind in kinds])
        nbytes = np.tile(self._scaled()[chosen], len(kinds))
        columns = [total, before, *terms.tolist()]
        self._rows.add(columns, [1.0, -1.0, *(-nbytes).tolist()], low=0.0, high=0.0)
        return total

    def _add_flow(self, copied: int, before: int, wait: int, free: int, seconds: float, rate: float) -> None:
        """What is copied between two moments takes time."""
        per_second = rate * self._bytes_scale
        share = per_second / self.seconds_scale
        unit = 1.0 / max(share, 1.0)
        columns = [copied, before, wait, free]
        self._rows.add(columns, [unit, -unit, -share * unit, -share * unit], high=per_second * seconds * unit)

    def _limit_free(self, free: Sequence[int], extra_seconds: float, recomputation: bool) -> None:
        """Time that is nobody's: what kernels take longer, and in the backward what is recomputed."""
        high, columns, coefficients = extra_seconds * self.seconds_scale, list(free), [1.0] * len(free)
        if recomputation:
            columns += self.recomputed.tolist()
            seconds = self._copies.recompute_seconds[self.values]
            coefficients += (-seconds * self.seconds_scale).tolist()
        self._rows.add(columns, coefficients, high=high)

    def _limit_latency(self, seconds: Floats, waits: Sequence[int], free: Sequence[int], pass_seconds: float) -> None:
        """All copies of a pass, with their latency, fit into it."""
        columns = [*self.offloaded.tolist(), *waits, *free]
        coefficients = [*(seconds[self.values] * self.seconds_scale).tolist(), *[-1.0] * (len(waits) + len(free))]
        self._rows.add(columns, coefficients, high=pass_seconds * self.seconds_scale)


def _tightest(slack_bytes: Floats) -> list[int]:
    """The moments with least slack of each of so many parts of a pass, in order."""
    parts = np.array_split(np.arange(len(slack_bytes)), min(_MOST_MOMENTS, max(len(slack_bytes), 1)))
    return [int(part[slack_bytes[part].argmin()]) for part in parts if part.size]
