"""Close the loop: look at what a plan became when lowered, and take another where that is too much or too little.

A forecast is a model; the lowered step is what will run. A plan whose lowered peak is over the budget is replaced by
one whose forecast is lower by as much; one that leaves more than a twentieth of the budget unused while it recomputes
is replaced by a faster one. Of all plans that were looked at, the fastest that fits is taken.
"""

from __future__ import annotations

from collections.abc import Callable

from autockpt.passes.forecast import Candidate
from autockpt.passes.planners.decide import Decision, Look
from autockpt.passes.planners.frontier import Frontier
from autockpt.passes.problem import Budget, Plan

ROUNDS = 3
"""Lowerings at most. The last one that is taken costs nothing: the compilation that follows finds it in the cache."""
_UNUSED = 0.95
HOPELESS = 1.1
"""So many times the budget a forecast must be to be believed without a look."""


class Unseen(Exception):
    """No plan could be lowered; the reason is the exception that this one comes from."""


def settle(decision: Decision, budget: Budget, look: Callable[[Plan], int], rounds: int = ROUNDS) -> Decision:
    """The decision after looking; `look` gives the lowered peak of a plan, parameters and inputs included."""
    frontier, cap = decision.frontier, decision.budget_bytes
    looks: list[Look] = []
    candidate: Candidate | None = decision.candidate
    while candidate is not None and len(looks) < rounds:
        seen = _look(candidate, frontier, look, first=not looks)
        if seen is None:
            break
        looks.append(seen)
        if budget.fraction == 1.0:
            # The whole of the way from lowest to fastest: whatever the fastest plan takes.
            cap = max(cap, looks[0].needed_bytes)
        candidate = _next(frontier, cap, looks, is_last=len(looks) == rounds - 1)
    fitting = [seen for seen in looks if seen.needed_bytes <= cap]
    if fitting:
        best = min(fitting, key=lambda seen: (seen.candidate.seconds, seen.compiled_bytes))
    else:
        best = min(looks, key=lambda seen: seen.compiled_bytes)
        if budget.fraction is not None:
            # A share of the way between two forecasts: where the lower end was too low, the share is of a truer way.
            cap = best.needed_bytes
    return decision.instead(best.candidate, cap, tuple(looks))


def _look(candidate: Candidate, frontier: Frontier, look: Callable[[Plan], int], first: bool) -> Look | None:
    try:
        return Look(candidate, frontier.peak_bytes(candidate), look(candidate.plan))
    except Exception as error:
        if first:
            raise Unseen from error
        return None


def _next(frontier: Frontier, cap: int, looks: list[Look], is_last: bool) -> Candidate | None:
    """The plan to look at now, if any."""
    last = looks[-1]
    error = last.needed_bytes - last.forecast_bytes
    fitting = [seen.forecast_bytes for seen in looks if seen.needed_bytes <= cap]
    known = {look.candidate.plan for look in looks}
    if last.needed_bytes > cap:
        target = (max(fitting) + last.forecast_bytes) // 2 if fitting else cap - error
        found = frontier.within(min(target, last.forecast_bytes - 1)) or frontier.lowest
        if not fitting and (is_last or found.plan in known):
            found = frontier.lowest
    elif last.needed_bytes < _UNUSED * cap and last.candidate.seconds > frontier.fastest.seconds:
        found = frontier.within(cap - error) or last.candidate
    else:
        return None
    return None if found.plan in known else found
