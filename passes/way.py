"""A way down by evictions, walked only as far as somebody asks."""

from __future__ import annotations

from collections.abc import Callable

from autockpt.passes.candidate import Candidate
from autockpt.passes.evict import Evictor
from autockpt.passes.forecast import Simulator
from autockpt.passes.plan import Plan, Problem

_WORK = 60_000
"""Values that are replayed in a way, all steps together: a larger graph gets fewer steps."""


class Way:
    def __init__(
        self, problem: Problem, simulator: Simulator, start: Plan, make: Callable[[Plan, int], Candidate]
    ) -> None:
        count = len(problem.graph.values)
        self._steps = Evictor(problem, simulator)(start, _WORK // count)
        self._make = make
        # With as much recomputation as one more forward, nested plans take over.
        self._most_seconds = sum(problem.seconds[name] for name in problem.graph.required_forward)
        self.candidates: list[Candidate] = []
        """So far, those with a lower peak than all before them; each slower than the one before."""
        self._lowest_bytes: list[int] = []

    def first_within(self, budget_bytes: int, seconds: float) -> Candidate | None:
        """The fastest of the way that fits, if it is faster than this."""
        for candidate, peak_bytes in zip(self.candidates, self._lowest_bytes, strict=True):
            if peak_bytes <= budget_bytes:
                return candidate
        most = min(seconds, self._most_seconds)
        while not self.candidates or self.candidates[-1].recompute_seconds < most:
            if (step := next(self._steps, None)) is None:
                return None
            plan, peak_bytes = step
            if self._lowest_bytes and peak_bytes >= self._lowest_bytes[-1]:
                continue
            self.candidates.append(self._make(plan, peak_bytes))
            self._lowest_bytes.append(peak_bytes)
            if peak_bytes <= budget_bytes:
                return self.candidates[-1]
        return None
