"""The plans worth having: priced cuts at every price that matters, and blends of neighbouring ones.

One price moves all identical layers at once, so the cuts alone leave large steps between one peak and the
next. A blend is a cut with two prices, one for the early part of the forward and one for the late part.
Both ways round are of use: late layers that are kept cost nothing where the peak is the last layer's own,
and early layers that are kept shorten the recomputation that runs beside all gradients.

The family of plans depends on the graph alone, never on the budget. The fastest member that fits is taken,
so a larger budget can never give a slower plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

from autockpt.passes.forecast import Simulator
from autockpt.passes.joint import Role, Trait
from autockpt.passes.min_cut import PricedCut
from autockpt.passes.plan import Plan, Problem
from autockpt.passes.schedule import Scheduler, leaves_first, traced_order

_STEPS = 24
"""Into so many steps blends divide the way from the most bytes kept to the least, each way round."""
_STEEP = 1000.0
"""At so many times the average seconds per byte nothing is kept but what is tiny or pinned."""


@dataclass(frozen=True)
class Candidate:
    plan: Plan
    kept_bytes: int
    seconds: float
    """Of recomputation."""


class Frontier:
    """All candidates of a problem, their peaks forecast only when asked for."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.simulator = Simulator(problem)
        self._cut = PricedCut(problem)
        self._scheduler = Scheduler(problem.graph, self._order())
        self._peaks: dict[frozenset[str], int] = {}
        self._held = problem.graph.given_bytes

    def _order(self) -> tuple[str, ...]:
        """Only a backward without side effects may run in another order than autograd traced."""
        fixed = {Trait.MUTATES, Trait.EFFECT, Trait.COLLECTIVE, Trait.RANDOM, Trait.SEED}
        graph = self.problem.graph
        if any(value.role is Role.BACKWARD and value.traits & fixed for value in graph.values):
            return traced_order(graph)
        return leaves_first(graph)

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """Fastest first; among equals the one that keeps less."""
        cuts = self._cuts
        blends = (blend for number in range(len(cuts) - 1) for blend in self._blends(number))
        every = {candidate.plan.kept: candidate for candidate in (*blends, *cuts)}
        return tuple(sorted(every.values(), key=lambda c: (c.seconds, c.kept_bytes, sorted(c.plan.kept))))

    @property
    def fastest(self) -> Candidate:
        return self._cuts[0]

    @cached_property
    def lowest(self) -> Candidate:
        """The candidate with the lowest peak; the fastest of those."""
        best = min(self._cuts, key=lambda c: (self.peak_bytes(c), c.seconds))
        for candidate in self.candidates:
            if self._held + candidate.kept_bytes < self.peak_bytes(best):
                best = min(best, candidate, key=lambda c: (self.peak_bytes(c), c.seconds))
        return best

    def within(self, budget_bytes: int) -> Candidate | None:
        """The fastest candidate whose peak fits."""
        if self.peak_bytes(self.fastest) <= budget_bytes:
            return self.fastest
        for candidate in self.candidates:
            if self._held + candidate.kept_bytes <= budget_bytes and self.peak_bytes(candidate) <= budget_bytes:
                return candidate
        return None

    def next_faster_bytes(self, candidate: Candidate) -> int | None:
        """The lowest peak of all candidates that are faster than this one; None where none is."""
        faster = [other for other in (*self._cuts, *self.candidates) if other.seconds < candidate.seconds]
        return min((self.peak_bytes(other) for other in faster), default=None)

    def peak_bytes(self, candidate: Candidate) -> int:
        kept = candidate.plan.kept
        if kept not in self._peaks:
            self._peaks[kept] = self.simulator.peak_bytes(candidate.plan)
        return self._peaks[kept]

    def _candidate(self, kept: frozenset[str]) -> Candidate:
        plan = self._scheduler(kept)
        kept_bytes = sum(self.problem.graph.bytes_of(name) for name in kept)
        return Candidate(plan, kept_bytes, self.simulator.recompute_seconds(plan))

    @property
    def _steepest(self) -> float:
        return max(_STEEP * self._cut.seconds_per_byte, 2 * self.problem.seconds_per_byte)

    @cached_property
    def _cuts(self) -> list[Candidate]:
        """The lower hull of seconds over bytes: the cut at every price at which the cut changes."""
        found: dict[frozenset[str], Candidate] = {}

        def at(price: float) -> Candidate:
            kept = self._cut.kept(price)
            if kept not in found:
                found[kept] = self._candidate(kept)
            return found[kept]

        # From the price of memory traffic upwards: below it, keeping more would be no faster.
        pending = [(at(self.problem.seconds_per_byte), at(self._steepest))]
        while pending:
            more, less = pending.pop()
            if more is less or more.kept_bytes <= less.kept_bytes:
                continue
            between = at(_break_even(more, less))
            if between is not more and between is not less:
                pending += [(more, between), (between, less)]
        return sorted(found.values(), key=lambda c: (c.seconds, c.kept_bytes))

    def _blends(self, number: int) -> Iterator[Candidate]:
        """Candidates between one cut and the next, as many as the bytes between them deserve."""
        more, less = self._cuts[number : number + 2]
        span = max(self._cuts[0].kept_bytes - self._cuts[-1].kept_bytes, 1)
        steps = (more.kept_bytes - less.kept_bytes) * _STEPS // span
        cheap, dear = self._price(number), self._price(number + 1)
        for step in range(1, steps + 1):
            share = step / (steps + 1)
            yield self._candidate(self._cut.kept(cheap, dear, share))
            yield self._candidate(self._cut.kept(dear, cheap, share))

    def _price(self, number: int) -> float:
        """A price well inside the range in which this cut is the best."""
        cuts = self._cuts
        low = _break_even(*cuts[number - 1 : number + 1]) if number else self.problem.seconds_per_byte
        high = _break_even(*cuts[number : number + 2]) if number + 1 < len(cuts) else self._steepest
        return sqrt(low * high)


def _break_even(more: Candidate, less: Candidate) -> float:
    """The price at which neither is better."""
    return (less.seconds - more.seconds) / max(more.kept_bytes - less.kept_bytes, 1)
