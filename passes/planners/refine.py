"""Refine a decision by dry runs: take another plan where the compiled peak is over the budget or far below it.

A forecast is a model; the generated code is what will run. A plan whose compiled peak is over the budget is replaced by
one whose forecast is lower by as much; one that recomputes and leaves more than a twentieth of the budget unused is
replaced by a faster one. Of all plans that were run dry, the fastest that fits is taken.
"""

from __future__ import annotations

from collections.abc import Callable

from autockpt.passes.forecast import Candidate
from autockpt.passes.planners.decide import CompiledPeak, Decision
from autockpt.passes.planners.frontier import Frontier
from autockpt.passes.problem import Budget, Outcome

MAX_DRY_RUNS = 3
"""The one of the plan that is taken costs nothing: the compilation that follows finds its code in Inductor's cache."""
_USED = 0.95
_HOPELESS = 1.1
"""Multiple of the budget from which a forecast over budget is believed without a dry run."""

DryRunPeak = Callable[[Candidate], CompiledPeak]
"""Generates the code of a candidate and runs it dry."""


class DryRunFailed(Exception):
    """No plan could be run dry; the reason is this exception's cause."""


def is_hopeless(decision: Decision) -> bool:
    """Whether the lowest forecast is so far over the budget that no dry run can bring it inside."""
    return decision.outcome is Outcome.OVER_BUDGET and decision.candidate.peak_bytes > _HOPELESS * decision.budget_bytes


def refine(decision: Decision, budget: Budget, dry_run: DryRunPeak, max_dry_runs: int = MAX_DRY_RUNS) -> Decision:
    """The decision after dry runs. Raises DryRunFailed where the first one fails."""
    frontier, budget_bytes = decision.frontier, decision.budget_bytes
    done: list[CompiledPeak] = []
    candidate: Candidate | None = decision.candidate
    while candidate is not None and len(done) < max_dry_runs:
        compiled = _try(candidate, dry_run, first=not done)
        if compiled is None:
            break
        done.append(compiled)
        if budget.fraction == 1.0:
            # The whole range up to the fastest plan: whatever that plan needs.
            budget_bytes = max(budget_bytes, done[0].needed_bytes)
        candidate = _next(frontier, budget_bytes, done, is_last=len(done) == max_dry_runs - 1)
    fitting = [run for run in done if run.needed_bytes <= budget_bytes]
    if fitting:
        best = min(fitting, key=lambda run: (run.candidate.seconds, run.compiled_bytes))
    else:
        best = min(done, key=lambda run: run.compiled_bytes)
        if budget.fraction is not None:
            # A fraction is taken between two forecasts. Where the lower forecast was too low, so was the budget.
            budget_bytes = best.needed_bytes
    return decision.with_candidate(best.candidate, budget_bytes, (*decision.dry_runs, *done))


def _try(candidate: Candidate, dry_run: DryRunPeak, first: bool) -> CompiledPeak | None:
    try:
        return dry_run(candidate)
    except Exception as error:
        if first:
            raise DryRunFailed from error
        return None


def _next(frontier: Frontier, budget_bytes: int, done: list[CompiledPeak], is_last: bool) -> Candidate | None:
    """The candidate to run dry next, if any."""
    last = done[-1]
    error_bytes = last.needed_bytes - last.forecast_bytes
    fitting = [run.forecast_bytes for run in done if run.needed_bytes <= budget_bytes]
    seen = {run.candidate.plan for run in done}
    if last.needed_bytes > budget_bytes:
        target_bytes = (max(fitting) + last.forecast_bytes) // 2 if fitting else budget_bytes - error_bytes
        found = frontier.within(min(target_bytes, last.forecast_bytes - 1)) or frontier.lowest
        if not fitting and (is_last or found.plan in seen):
            found = frontier.lowest
    elif last.needed_bytes < _USED * budget_bytes and last.candidate.seconds > frontier.fastest.seconds:
        found = frontier.within(budget_bytes - error_bytes) or last.candidate
    else:
        return None
    return None if found.plan in seen else found
