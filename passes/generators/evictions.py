"""Eviction descent: from a plan downwards, at each peak drop what costs least to recompute for its bytes.

The steps are those of `Evictor`. Recomputation only grows along a descent, so the first plan of it that fits is nearly
always its fastest that does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from autockpt.passes.forecast import Candidate
from autockpt.passes.generators.generator import Cuts, by_peak, faster
from autockpt.passes.generators.space import SearchSpace
from autockpt.passes.generators.two_level import TwoLevel
from autockpt.passes.problem import Plan

_LOWEST_CUTS = 2
_REACH = 1.5
"""How much faster than on average so far the peak may fall in the steps that are left of a descent."""


@dataclass(frozen=True)
class Evictions:
    """Descents from the fastest plan, from the cuts with the lowest peaks and from the lowest two-level plan, continued
    only as far as needed."""

    space: SearchSpace

    @cached_property
    def descents(self) -> tuple[Descent, ...]:
        """The short ones first: the others need not go on where they cannot get below these."""
        if not self.space.effort.eviction_steps:
            return ()
        two_level = self.space.shared(TwoLevel).lowest()
        cuts = self.space.shared(Cuts).lowest_of(_LOWEST_CUTS)
        found: dict[Plan, Descent] = {}
        for candidate in (*([two_level] if two_level else []), *cuts, self.space.fastest_cut):
            if candidate.plan not in found:
                found[candidate.plan] = Descent(self.space, candidate.plan, tuple(found.values()))
        return tuple(found.values())

    def fastest(self) -> None:
        return None

    def within(self, budget_bytes: int, beat_seconds: float) -> Candidate | None:
        best: Candidate | None = None
        for descent in self.descents:
            best = faster(best, descent.within(budget_bytes, best.seconds if best else beat_seconds))
        return best

    def lowest(self) -> Candidate | None:
        # None of them ends lowest on every model: on Llama the one from the two-level plan does, on BERT the one from
        # the lowest cut, on U-Net the one from the fastest plan.
        found = [lowest for descent in self.descents if (lowest := descent.lowest)]
        return min(found, key=by_peak, default=None)

    def explore(self) -> None:
        """Evaluate all descents, as far as their peaks fall."""
        for descent in self.descents:
            descent.explore()


class Descent:
    """The plans of one descent, each with a lower peak than all before it; made as far as somebody needs them."""

    def __init__(self, space: SearchSpace, start: Plan, others: tuple[Descent, ...] = ()) -> None:
        """`others`: descents of the same graph. This one stops where it will not end below their lowest peak."""
        problem = space.problem
        self._space, self._most_steps = space, space.effort.eviction_steps
        self._steps = enumerate(space.evictor(replace(start, offloaded=()), self._most_steps), 1)
        # One more forward than at the start: two-level plans reach as low with less.
        one_forward = sum(problem.seconds[name] for name in problem.graph.required_forward)
        self._most_seconds = space.evaluator.simulator.recompute_seconds(start) + one_forward
        self._others = others
        self.candidates: list[Candidate] = []
        self._taken: list[int] = []
        """Steps from the start to each candidate."""

    def within(self, budget_bytes: int, beat_seconds: float) -> Candidate | None:
        """The fastest plan so far that fits, after descending to the first that does; None if not below `beat`."""
        while not self.candidates or self.candidates[-1].peak_bytes > budget_bytes:
            if self.candidates and not self._is_worth_a_step(len(self.candidates) - 1, budget_bytes, beat_seconds):
                break
            if not self._descend():
                break
        fitting = [candidate for candidate in self.candidates if candidate.peak_bytes <= budget_bytes]
        best = min(fitting, key=lambda candidate: candidate.seconds, default=None)
        return best if best and best.seconds < beat_seconds else None

    @cached_property
    def lowest(self) -> Candidate | None:
        """The plan with the lowest peak, after descending for as long as it may get below those of other descents."""
        number = 0
        while number < len(self.candidates) or self._descend():
            if not self._is_worth_a_step(number, 0, inf):
                break
            number += 1
        # Not one that was made beyond for a budget: what is found depends on the graph alone.
        return self.candidates[min(number, len(self.candidates) - 1)] if self.candidates else None

    def explore(self) -> None:
        """Descend to the end, or to where recomputation takes too long."""
        while not self.candidates or self.candidates[-1].recompute_seconds < self._most_seconds:
            if not self._descend():
                break

    def _is_worth_a_step(self, number: int, budget_bytes: int, beat_seconds: float) -> bool:
        """Whether plans after this one may be faster than `beat_seconds`, and at last fit the budget, or be lower than
        those of other descents, at the rate at which the peak fell so far."""
        recompute = self.candidates[number].recompute_seconds
        if recompute >= self._most_seconds or self._space.step_seconds(recompute) >= beat_seconds:
            return False
        if not number:
            return True
        first, reached = self.candidates[0].peak_bytes, self.candidates[number].peak_bytes
        rate = (first - reached) / (self._taken[number] - self._taken[0])
        expected = reached - _REACH * rate * (self._most_steps - self._taken[number])
        return expected <= budget_bytes or expected <= self._useful_bytes

    @cached_property
    def _useful_bytes(self) -> float:
        """The lowest peak of other descents."""
        found = [lowest.peak_bytes for descent in self._others if (lowest := descent.lowest)]
        return min(found, default=inf)

    def _descend(self) -> bool:
        """Make the next candidate, a plan with a lower peak than the last; whether there is one."""
        for step, (plan, peak_bytes) in self._steps:
            if not self.candidates or peak_bytes < self.candidates[-1].peak_bytes:
                self.candidates.append(self._space.evaluator.evaluate(plan, "evictions"))
                self._taken.append(step)
                return True
        return False
