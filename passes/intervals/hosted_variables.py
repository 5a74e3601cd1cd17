"""Variables of the interval program with a link, and the constraints that its two passes have in common.

Shares r, s and o of the values that matter come first, then bytes and seconds, each in a unit of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from autockpt.passes.graph import Booleans, Floats, Integers
from autockpt.passes.intervals.copies import CopyTimes
from autockpt.passes.intervals.linear import Constraints, LinearProgram
from autockpt.passes.intervals.values import Intervals

_SCALE = 1e3
"""Of the largest coefficients, far above the solver's tolerances."""


class HostedVariables:
    def __init__(self, intervals: Intervals, copies: CopyTimes, most_bytes: float) -> None:
        self.intervals, self.copies = intervals, copies
        self.values = np.flatnonzero(intervals.relevant)
        size = self.values.size
        self.recomputed, self.saved, self.offloaded = (np.arange(size) + size * part for part in range(3))
        seconds, nbytes = intervals.recompute_seconds[self.values], intervals.nbytes[self.values]
        # Values that may be neither saved nor offloaded have no bytes of their own here.
        self._nbytes = np.where(np.isinf(nbytes), 0.0, nbytes)
        total = float(np.where(np.isinf(seconds), 0.0, seconds).sum()) + float(copies.starts[0][-1])
        self.seconds_scale = _SCALE / max(total, 1e-300)
        self.bytes_scale = _SCALE / max(most_bytes, float(self._nbytes.max(initial=0.0)), 1.0)
        may = copies.may_offload[self.values] & np.isfinite(nbytes)
        most = np.concatenate([np.isfinite(seconds), np.isfinite(nbytes), may]).astype(float)
        self._most: list[float] = most.tolist()
        self._cost: list[float] = [0.0] * (3 * size)
        self._cost[:size] = np.where(np.isinf(seconds), 0.0, seconds * self.seconds_scale).tolist()
        self.rows = Constraints()

    @property
    def program(self) -> LinearProgram:
        cost = np.array(self._cost)
        return LinearProgram(cost, np.zeros(len(cost)), np.array(self._most), self.rows)

    def new(self, cost: float = 0.0) -> int:
        self._most.append(inf)
        self._cost.append(cost)
        return len(self._cost) - 1

    def scaled(self) -> Floats:
        return self._nbytes * self.bytes_scale

    def fix_to_zero(self, *variables: int) -> None:
        for variable in variables:
            self._most[variable] = 0.0

    def sum_of(self, before: int, chosen: Booleans, *kinds: Integers) -> int:
        """A variable for the bytes before and those of the chosen values."""
        total = self.new()
        terms = np.concatenate([kind[chosen] for kind in kinds])
        nbytes = np.tile(self.scaled()[chosen], len(kinds))
        columns = [total, before, *terms.tolist()]
        self.rows.add(columns, [1.0, -1.0, *(-nbytes).tolist()], low=0.0, high=0.0)
        return total

    def add_flow(self, copied: int, before: int, wait: int, free: int, seconds: float, rate: float) -> None:
        """What is copied between two moments takes time."""
        per_second = rate * self.bytes_scale
        share = per_second / self.seconds_scale
        unit = 1.0 / max(share, 1.0)
        columns = [copied, before, wait, free]
        self.rows.add(columns, [unit, -unit, -share * unit, -share * unit], high=per_second * seconds * unit)

    def limit_free(self, free: Sequence[int], extra_seconds: float, recomputation: bool) -> None:
        """Time that is nobody's: what kernels take longer, and in the backward what is recomputed."""
        high, columns, coefficients = extra_seconds * self.seconds_scale, list(free), [1.0] * len(free)
        if recomputation:
            columns += self.recomputed.tolist()
            seconds = self.copies.recompute_seconds[self.values]
            coefficients += (-seconds * self.seconds_scale).tolist()
        self.rows.add(columns, coefficients, high=high)

    def limit_latency(self, seconds: Floats, waits: Sequence[int], free: Sequence[int], pass_seconds: float) -> None:
        """All copies of a pass, with their latency, fit into it."""
        columns = [*self.offloaded.tolist(), *waits, *free]
        coefficients = [*(seconds[self.values] * self.seconds_scale).tolist(), *[-1.0] * (len(waits) + len(free))]
        self.rows.add(columns, coefficients, high=pass_seconds * self.seconds_scale)
