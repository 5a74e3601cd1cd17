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

from dataclasses import dataclass

import numpy as np

from autockpt.passes.graph import Floats
from autockpt.passes.intervals.copies import CopyTimes
from autockpt.passes.intervals.highs import solve_linear
from autockpt.passes.intervals.hosted_variables import HostedVariables
from autockpt.passes.intervals.values import Intervals

_MOST_MOMENTS = 32
"""Of one pass."""


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


class _Posed(HostedVariables):
    """With the constraints of the values and of both passes."""

    def add_values(self) -> None:
        """What the backward needs is there, and so is what a recomputation reads; the host has room."""
        intervals, columns = self.intervals, np.column_stack([self.recomputed, self.saved, self.offloaded])
        self.rows.add_each(columns[intervals.needed_by_backward[self.values]], [1.0] * 3, low=1.0)
        position = np.full(intervals.count, -1)
        position[self.values] = np.arange(self.values.size)
        source, target = intervals.reads[:, 0], intervals.reads[:, 1]
        matters = (position[target] >= 0) & ~intervals.free_to_save[source]
        matters &= np.isfinite(intervals.recompute_seconds[target])
        pairs = np.column_stack([columns[position[source[matters]]], self.recomputed[position[target[matters]]]])
        self.rows.add_each(pairs, [1.0, 1.0, 1.0, -1.0], low=0.0)
        self.rows.add(self.offloaded.tolist(), self.scaled().tolist(), high=self.copies.host_bytes * self.bytes_scale)

    def add_forward(self, slack_bytes: Floats) -> None:
        copies, first = self.copies, self.intervals.first_moment[self.values]
        made = copies.made[self.values]
        starts, rate = copies.starts[0], copies.link.out_bytes_per_second
        waits, free = [], []
        held, read, ready, copied, at = self.new(), self.new(), self.new(), self.new(), -1
        self.fix_to_zero(held, read, ready, copied)
        for moment in (*_tightest(slack_bytes), len(slack_bytes)):
            entering = (first > at) & (first <= moment)
            held = self.sum_of(held, entering, self.saved, self.offloaded)
            read = self.sum_of(read, entering, self.offloaded)
            # The copy starts behind the operation that computes the value.
            ready = self.sum_of(ready, (made >= at) & (made < moment) if at >= 0 else made < moment, self.offloaded)
            before, copied = copied, self.new()
            waits.append(self.new(cost=1.0))
            free.append(self.new())
            self.rows.add([copied, ready], [1.0, -1.0], high=0.0)
            self.add_flow(copied, before, waits[-1], free[-1], float(starts[moment] - starts[max(at, 0)]), rate)
            if moment < len(slack_bytes):
                gone = self.new()
                self.rows.add([gone, read], [1.0, -1.0], high=0.0)
                self.rows.add([gone, copied], [1.0, -1.0], high=0.0)
                self.rows.add([held, gone], [1.0, -1.0], high=float(slack_bytes[moment]) * self.bytes_scale)
            at = moment
        # All of it has left at the end.
        self.rows.add([copied, ready], [1.0, -1.0], low=0.0)
        self.limit_free(free, copies.extra_seconds[0], recomputation=False)
        self.limit_latency(copies.out_seconds, waits, free, float(starts[-1]))

    def add_backward(self, slack_bytes: Floats, boundary: int) -> None:
        """From the end to the boundary: what is to be copied after a moment."""
        copies, last = self.copies, self.intervals.last_moment[self.values] - boundary
        deadline = copies.deadline[self.values] - boundary
        starts, rate = copies.starts[1], copies.link.in_bytes_per_second
        waits, free = [], []
        held, unread, needed, left, at = self.new(), self.new(), self.new(), self.new(), len(slack_bytes)
        self.fix_to_zero(held, unread, needed, left)
        for moment in (*reversed(_tightest(slack_bytes)), -1):
            entering = (last < at) & (last >= moment)
            held = self.sum_of(held, entering, self.saved, self.offloaded)
            unread = self.sum_of(unread, entering, self.offloaded)
            needed = self.sum_of(needed, (deadline < at) & (deadline >= moment), self.offloaded)
            after, left = left, self.new()
            waits.append(self.new(cost=1.0))
            free.append(self.new())
            self.rows.add([left, needed], [1.0, -1.0], high=0.0)
            self.add_flow(left, after, waits[-1], free[-1], float(starts[at] - starts[max(moment, 0)]), rate)
            if moment >= 0:
                gone = self.new()
                self.rows.add([gone, unread], [1.0, -1.0], high=0.0)
                self.rows.add([gone, left], [1.0, -1.0], high=0.0)
                self.rows.add([held, gone], [1.0, -1.0], high=float(slack_bytes[moment]) * self.bytes_scale)
            at = moment
        # All of it comes back.
        self.rows.add([left, needed], [1.0, -1.0], low=0.0)
        self.limit_free(free, copies.extra_seconds[1], recomputation=True)
        self.limit_latency(copies.in_seconds, waits, free, float(starts[-1]))


def _tightest(slack_bytes: Floats) -> list[int]:
    """The moments with least slack of each of so many parts of a pass, in order."""
    parts = np.array_split(np.arange(len(slack_bytes)), min(_MOST_MOMENTS, max(len(slack_bytes), 1)))
    return [int(part[slack_bytes[part].argmin()]) for part in parts if part.size]
