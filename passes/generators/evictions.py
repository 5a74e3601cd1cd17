"""Eviction descent: from a plan downwards, at each peak drop what costs least to recompute for its bytes.

The steps are those of `Evictor`. Recomputation only grows along a descent, so the first plan of it that fits is nearly
always its fastest that does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from autockpt.passes.forecast import Candidate
from autockpt.passes.generators.evictor import Evictor
from autockpt.passes.generators.generator import Cuts, by_peak, faster
from autockpt.passes.generators.space import SearchSpace
from autockpt.passes.problem import Plan

_LOWEST_CUTS = 2


@dataclass(frozen=True)
class Evictions:
    """Descents from the fastest plan and from the cuts with the lowest peaks, continued only as far as needed."""

    space: SearchSpace

    @cached_property
    def descents(self) -> tuple[Descent, ...]:
        if not self.space.effort.eviction_steps:
            return ()
        lowest = sorted(Cuts(self.space).candidates(), key=by_peak)[:_LOWEST_CUTS]
        starts = dict.fromkeys(candidate.plan for candidate in (self.space.fastest_cut, *lowest))
        return tuple(Descent(self.space, start) for start in starts)

    def fastest(self) -> None:
        return None

    def within(self, budget_bytes: int, beat_seconds: float) -> Candidate | None:
        best: Candidate | None = None
        for descent in self.descents:
            best = faster(best, descent.within(budget_bytes, best.seconds if best else beat_seconds))
        return best

    def lowest(self) -> Candidate | None:
        # None of them ends lowest on every model: on Llama and U-Net the one from the fastest plan does.
        for descent in self.descents:
            descent.within(0, inf)
        return min((found for descent in self.descents for found in descent.candidates), key=by_peak, default=None)


class Descent:
    """The plans of one descent, each with a lower peak than all before it; made as far as somebody needs them."""

    def __init__(self, space: SearchSpace, start: Plan) -> None:
        problem = space.problem
        self._space = space
        self._steps = Evictor(problem, space.evaluator.simulator)(
            replace(start, offloaded=()), space.effort.eviction_steps
        )
        # Two-level plans are better once recomputation exceeds one more forward.
        self._most_seconds = sum(problem.seconds[name] for name in problem.graph.required_forward)
        self.candidates: list[Candidate] = []

    def within(self, budget_bytes: int, beat_seconds: float) -> Candidate | None:
        """The fastest plan so far that fits, after descending to the first that does; None if not below `beat`."""
        while not self.candidates or self.candidates[-1].peak_bytes > budget_bytes:
            if self.candidates and self._is_too_slow(self.candidates[-1], beat_seconds):
                break
            if (plan := self._next()) is None:
                break
            self.candidates.append(self._space.evaluator.evaluate(plan, "evictions"))
        fitting = [candidate for candidate in self.candidates if candidate.peak_bytes <= budget_bytes]
        best = min(fitting, key=lambda candidate: candidate.seconds, default=None)
        return best if best and best.seconds < beat_seconds else None

    def _is_too_slow(self, candidate: Candidate, beat_seconds: float) -> bool:
        recompute = candidate.recompute_seconds
        return recompute >= self._most_seconds or self._space.step_seconds(recompute) >= beat_seconds

    def _next(self) -> Plan | None:
        """The next plan with a lower peak than the last."""
        for plan, peak_bytes in self._steps:
            if not self.candidates or peak_bytes < self.candidates[-1].peak_bytes:
                return plan
        return None
