"""The plan of all observed phases: the step problem solved, and corrected by dry runs of the plans in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from autockpt.passes.problem import CHECKED_MARGIN, Budget, Outcome
from autockpt.passes.step import StepCall, StepPlan, StepProblem, resolve_budget, solve
from autockpt.step.calls.observed import EAGER, EAGER_TABLE, Observed
from autockpt.step.graph import StepGraph

_MOST_ROUNDS = 5
"""Solutions of the step problem, each corrected by the dry runs of the last."""
UNCOUNTED_BYTES = 64 * 2**10
"""Scalars, and what autograd allocates between two graphs."""


def budget_of(graphs: Sequence[StepGraph]) -> int | None:
    """The least of the budgets of these graphs; None where all are fractions."""
    return min((graph.budget_bytes for graph in graphs if graph.budget_bytes is not None), default=None)


def by_budget(observed: Iterable[Observed]) -> list[list[Observed]]:
    """Phases that share a budget: each fraction is one of its own, all sizes together are the least of them."""
    groups: dict[float | None, list[Observed]] = {}
    for one in observed:
        fraction = min((graph.fraction or 0.0 for graph in one.graphs), default=0.0)
        groups.setdefault(fraction if budget_of(one.graphs) is None else None, []).append(one)
    return list(groups.values())


def graphs_of(observed: Iterable[Observed]) -> list[StepGraph]:
    """That are called in these phases, each once."""
    return list(dict.fromkeys(graph for one in observed for graph in one.graphs))


@dataclass(frozen=True)
class StepSolver:
    observed: Sequence[Observed]
    optimizer_bytes: int
    """State that the optimizers have or will have."""
    budget_bytes: int | None
    """None where all budgets are fractions."""

    @property
    def graphs(self) -> Mapping[str, StepGraph]:
        return {graph.name: graph for graph in graphs_of(self.observed)}

    def solve(self) -> StepPlan:
        """The fastest plan within the budget, as the code generated for it says; its budget is the user's."""
        budget_bytes = self.budget_bytes
        checked = self._checked(budget_bytes)
        usable_bytes = checked[-1].budget_bytes
        fitting = [plan for plan in checked if plan.problem.at(usable_bytes).fits(plan.choices)]
        if fitting:
            found = min(fitting, key=lambda plan: (plan.seconds, plan.peak_bytes))
            outcome: Outcome = Outcome.FITS if found.outcome is Outcome.OVER_BUDGET else found.outcome
        else:
            found = min(checked, key=lambda plan: plan.peak_bytes)
            outcome = Outcome.OVER_BUDGET
        if budget_bytes is None:
            # A fraction is taken between two forecasts. Where the lower one was too low, so was the budget.
            budget_bytes = max(usable_bytes, found.peak_bytes)
            outcome = Outcome.FITS if outcome is Outcome.OVER_BUDGET else outcome
        return replace(found, problem=found.problem.at(budget_bytes), outcome=outcome)

    def _checked(self, budget_bytes: int | None) -> list[StepPlan]:
        """Solutions with the figures of their generated code, until one stays as it is."""
        checked: list[StepPlan] = []
        for _ in range(_MOST_ROUNDS):
            usable_bytes = self._usable(budget_bytes)
            plan = solve(self._pose(usable_bytes))
            unknown = self._dry_run(plan)
            checked.append(replace(plan, problem=self._pose(usable_bytes)))
            if not unknown:
                break
        return checked

    def _usable(self, budget_bytes: int | None) -> int:
        """Bytes for what is forecast: the budget less a margin of what the graphs may take.

        A fraction is of the range between forecasts that dry runs have corrected.
        """
        if budget_bytes is not None:
            outside_bytes = min((call.forward_outside_bytes for call in self._pose(0).calls), default=0)
            return budget_bytes - int(max(budget_bytes - outside_bytes, 0) * CHECKED_MARGIN) - UNCOUNTED_BYTES
        fraction = min(graph.fraction or 0.0 for graph in self.graphs.values())
        return resolve_budget(Budget(fraction=fraction), self._pose(0))

    def _dry_run(self, plan: StepPlan) -> bool:
        """Run the chosen plans dry; whether any was for the first time."""
        new = [graph.dry_run(list(plan.variants(name))) for name, graph in self.graphs.items()]
        return any(new)

    def _pose(self, budget_bytes: int) -> StepProblem:
        calls: list[StepCall] = []
        gaps: list[StepCall] = []
        for one in self.observed:
            gaps += one.gaps(len(calls), self.optimizer_bytes)
            calls += one.calls(len(calls), self.optimizer_bytes)
        tables = {name: graph.current_table() for name, graph in self.graphs.items()}
        if gaps:
            tables[EAGER] = EAGER_TABLE
        host_bytes = min((graph.request.setup.host_bytes for graph in self.graphs.values()), default=0)
        return StepProblem(tables, (*calls, *gaps), budget_bytes, host_bytes=host_bytes)
