"""Exact search: every plan of a graph that is small and runs unfused, repeated recomputation included (A*).

With a link to the host, every choice of what waits there and of when it is copied is searched, too, where few enough
values may cross. The replay of a plan with copies is exact arithmetic, so the fastest plan found is the fastest there
is by the forecast. Graphs with values that the user tagged to wait on the host are searched without other copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from autockpt.passes.forecast import Candidate, HostLink, Simulator
from autockpt.passes.generators.space import SearchSpace
from autockpt.passes.graph import Kind, Role, Value
from autockpt.passes.instances import (
    TooLarge,
    hosted_instance,
    hosted_plan_of,
    instance_of,
    peak_bytes,
    plan_of,
    solve_exact,
    solve_hosted,
)
from autockpt.passes.problem import Lowering, Plan, Problem

_MAX_FORWARD_OPERATIONS = 14
"""Of graphs that are searched exactly."""
_MAX_VALUES = 60
"""Of the whole graph: larger ones are not converted at all."""
_MAX_STATES = 50_000
_MAX_HOSTED_OPERATIONS = 8
"""Forward operations of graphs that are searched with copies: every one is saved, recomputed or offloaded."""
_MAX_LABELS = 10_000
"""Of one search with copies; one label takes as long as two states."""


@dataclass(frozen=True)
class Exact:
    """Every plan of such a graph; nothing of any other."""

    space: SearchSpace

    @cached_property
    def _search(self) -> ExactSearch | None:
        return ExactSearch.of(self.space.problem, self.space.evaluator.order)

    @cached_property
    def _hosted(self) -> HostedSearch | None:
        return HostedSearch.of(self.space.evaluator.simulator, self.space.evaluator.order) if self._search else None

    def fastest(self) -> None:
        return None

    def within(self, budget_bytes: int, beat_seconds: float) -> Candidate | None:
        plan = self._hosted.within(budget_bytes) if self._hosted else None
        # Without an answer, what may be searched without copies.
        if plan is None and self._search:
            plan = self._search.within(budget_bytes)
        found = self.space.evaluator.evaluate(plan, "exact") if plan else None
        return found if found and found.peak_bytes <= budget_bytes and found.seconds < beat_seconds else None

    def lowest(self) -> Candidate | None:
        known = self.space.fastest_cut
        if self._search and (plan := self._search.lowest(known.peak_bytes)):
            known = min(known, self.space.evaluator.evaluate(plan, "exact"), key=lambda one: one.peak_bytes)
        if self._hosted and (plan := self._hosted.lowest(known.peak_bytes)):
            known = self.space.evaluator.evaluate(plan, "exact")
        return known if known is not self.space.fastest_cut else None


class ExactSearch:
    """The search itself. An unfused graph costs as an instance what its forecast says: in practice `lower="eager"` on a
    few layers, and the oracle of tests."""

    def __init__(self, problem: Problem, order: Sequence[str]) -> None:
        self._problem = problem
        self._instance, self._naming = instance_of(problem, order)
        self._static_bytes = problem.static_bytes

    @staticmethod
    def of(problem: Problem, order: Sequence[str]) -> ExactSearch | None:
        """None where the graph is too large, fused, or counted otherwise by an instance."""
        values = problem.graph.values
        forward = [value for value in values if value.role is Role.FORWARD]
        large = len(values) > _MAX_VALUES or len(forward) > 2 * _MAX_FORWARD_OPERATIONS
        if large or problem.lowering is not Lowering.EAGER or problem.margin:
            return None
        if any(_is_overcounted(problem, value) for value in forward):
            return None
        search = ExactSearch(problem, order)
        return search if search._instance.boundary <= _MAX_FORWARD_OPERATIONS else None

    def within(self, budget_bytes: int) -> Plan | None:
        """The fastest plan that fits; None where there is none, or where the search has too many states."""
        try:
            runs = solve_exact(self._instance, budget_bytes - self._static_bytes, _MAX_STATES)
        except TooLarge:
            return None
        return plan_of(self._problem, self._naming, runs) if runs is not None else None

    def lowest(self, known_bytes: int) -> Plan | None:
        """The minimum peak by bisection below a peak that is reached; None where a search has too many states."""
        best: Plan | None = None
        low, high = self._static_bytes, known_bytes
        while low < high:
            middle = (low + high) // 2
            try:
                runs = solve_exact(self._instance, middle - self._static_bytes, _MAX_STATES)
            except TooLarge:
                return None
            if runs is None:
                low = middle + 1
            else:
                best = plan_of(self._problem, self._naming, runs)
                high = self._static_bytes + peak_bytes(self._instance, runs)
        return best


class HostedSearch:
    """The same with copies to the host and back."""

    def __init__(self, simulator: Simulator, link: HostLink, order: Sequence[str]) -> None:
        self._simulator, self._problem = simulator, simulator.problem
        self._hosted, self._naming = hosted_instance(self._problem, simulator, link, order)

    @staticmethod
    def of(simulator: Simulator, order: Sequence[str]) -> HostedSearch | None:
        """None where nothing may be offloaded or is tagged to be, and where the graph is too large."""
        problem = simulator.problem
        if simulator.link is None or not problem.host_bytes or problem.tagged_offload:
            return None
        search = HostedSearch(simulator, simulator.link, order)
        return search if search._hosted.instance.boundary - 1 <= _MAX_HOSTED_OPERATIONS else None

    def within(self, budget_bytes: int) -> Plan | None:
        """The fastest plan that fits; None where there is none, or where the search has too many labels."""
        try:
            run = solve_hosted(self._hosted, budget_bytes - self._problem.static_bytes, _MAX_LABELS)
        except TooLarge:
            return None
        return hosted_plan_of(self._problem, self._naming, run) if run is not None else None

    def lowest(self, known_bytes: int) -> Plan | None:
        """The minimum peak by bisection below a peak that is reached; None where nothing lower is found."""
        best: Plan | None = None
        low, high = self._problem.static_bytes, known_bytes
        while low < high:
            middle = (low + high) // 2
            plan = self.within(middle)
            if plan is None:
                low = middle + 1
            else:
                best, high = plan, self._simulator.peak_bytes(plan)
        return best


def _is_overcounted(problem: Problem, value: Value) -> bool:
    """Whether an instance counts more bytes than the replay: several results of one operation, savable masks."""
    backward_only = value.owns_bytes and value.name not in problem.graph.required_forward
    return value.kind is Kind.PART or (backward_only and value.name not in problem.unsavable)
