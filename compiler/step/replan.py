"""How a step is planned: all observed phases together, or one graph that is the whole step; and what is said of it."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from autockpt.errors import BudgetError
from autockpt.passes.problem import Budget, Outcome
from autockpt.step.calls.observed import Observed
from autockpt.step.calls.phase import Key, Phase
from autockpt.step.decision import StepDecision, infeasible_step, record_step
from autockpt.step.graph import StepGraph
from autockpt.step.outside import live_kinds
from autockpt.step.ranks.step_plan import agree_on_budget, agree_on_step
from autockpt.step.solving import StepSolver, budget_of, by_budget, graphs_of
from autockpt.step.variant import Variant
from autockpt.units import format_size

if TYPE_CHECKING:
    from autockpt.step.calls.ledger import Ledger

log = logging.getLogger("autockpt")


class Replanner:
    """Makes plans, enters them into the ledger's tree, and knows up to which live bytes they hold."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.limits: dict[Key, int] = {}
        """By the first pass of a phase: live bytes at its start up to which its plan holds."""

    def limit(self, key: Key, entry_bytes: int) -> None:
        self.limits[key] = min(self.limits.get(key, entry_bytes), entry_bytes)

    def forget(self, graphs: set[int]) -> None:
        """Their compiled functions are gone."""
        self.limits = {key: limit for key, limit in self.limits.items() if key not in graphs}

    @property
    def _optimizer_growth(self) -> int:
        """State that optimizers have yet to allocate."""
        return self._ledger.optimizers.expected_bytes - self._ledger.optimizers.existing_bytes

    def together(self, observed: Collection[Observed], entry_bytes: int) -> None:
        """Plan all phases, those of one budget together, and compile what changed. Raises BudgetError."""
        self._ledger.root.following.clear()
        self.limits.clear()
        groups = by_budget(observed)
        used = [variant for group in groups for variant in self._plan(group, entry_bytes)]
        for graph in dict.fromkeys(graph for group in groups for one in group for graph in one.graphs):
            graph.free_unused(used)

    def _plan(self, observed: Sequence[Observed], entry_bytes: int) -> list[Variant]:
        """Plan these phases together; the variants of their calls."""
        started = time.perf_counter()
        for one in observed:
            for graph, sizes in zip(one.graphs, one.sizes, strict=True):
                graph.grow(sizes)
        observed = [one.at_sizes() for one in observed]
        agreed = agree_on_step(observed, self._ledger.optimizers.expected_bytes, budget_of(graphs_of(observed)))
        observed, optimizer_bytes = agreed.observed, agreed.optimizer_bytes
        plan = StepSolver(observed, optimizer_bytes, agreed.budget_bytes).solve()
        kinds = live_kinds(self._ledger.device, entry_bytes)
        graphs = {graph.name: graph for graph in graphs_of(observed)}
        if plan.outcome is Outcome.OVER_BUDGET:
            message = infeasible_step(plan, kinds)
            if all(graph.on_infeasible == "error" for graph in graphs.values()):
                raise BudgetError(message, plan.budget_bytes, plan.peak_bytes)
            warnings.warn(f"autockpt: {message}; running at the minimum peak", RuntimeWarning, stacklevel=2)
        variants = iter(agreed.variants(plan.options))
        routes = [(one, [next(variants) for _ in one.graphs]) for one in observed]
        for one, used in routes:
            self._ledger.root.add(one.signature, used, one.sizes)
            if budget_of(one.graphs) is not None:
                slack = max(plan.budget_bytes - plan.peak_bytes, 0) + agreed.late_bytes
                self.limit(one.signature[0], one.entry_bytes + optimizer_bytes + slack)
        seconds = time.perf_counter() - started
        made = StepDecision.of(plan, routes, kinds, self._ledger.device, seconds)
        record_step(made)
        self._ledger.stored.save(routes, self.limits, made)
        return [variant for _, used in routes for variant in used]

    def alone(self, graph: StepGraph, entry_bytes: int, alike: Sequence[Observed]) -> None:
        """A graph that is the whole step, with less of the budget left for it than when it was compiled."""
        inputs = graph.first.made.graph_input_bytes
        entry_bytes += self._optimizer_growth
        assert graph.budget_bytes is not None
        outside_bytes = entry_bytes - inputs + max((one.eager_bytes for one in alike), default=0)
        budget = Budget(total_bytes=agree_on_budget(graph, graph.budget_bytes - outside_bytes))
        request = replace(graph.request, setup=replace(graph.request.setup, budget=budget))
        variant = graph.compile(request, outside_bytes=outside_bytes)
        graph.put_first(variant)
        for one in alike:
            self._ledger.root.remove(one.signature)
        for one in alike:
            self._ledger.root.add(one.signature, [variant], one.sizes)
        self.limits[graph.number] = max(graph.budget_bytes - variant.option.pass_bytes, entry_bytes)
        log.info("%s is planned again, for %s that are live outside of it", graph.name, format_size(outside_bytes))
        if alike:
            made = self._record_alone(alike[0], variant, entry_bytes)
            self._ledger.stored.save([(alike[0], [variant])], self.limits, made)

    def accept(self, observed: Observed, phase: Phase) -> None:
        """A phase of one call ran inside its budget by the plan that its graph was compiled with."""
        variant = phase.calls[0].variant
        self._ledger.root.add(phase.signature, [variant], observed.sizes)
        self._record_alone(observed, variant, phase.entry_bytes + self._optimizer_growth)
        if observed.budget_bytes is not None:
            self.limit(phase.signature[0], phase.entry_bytes + observed.budget_bytes - phase.peak_bytes)

    def _record_alone(self, observed: Observed, variant: Variant, entry_bytes: int) -> StepDecision:
        # Observed with another plan, which held other bytes between its passes.
        held_more = variant.option.held_bytes - observed.options[0].held_bytes
        eager_bytes = max(observed.gap_bytes + held_more + max(entry_bytes - observed.observed_at_bytes, 0), 0)
        budget_bytes = budget_of(observed.graphs)
        made = StepDecision.alone(variant, entry_bytes, eager_bytes, budget_bytes, self._ledger.device)
        # The line of the graph's own decision says all of it.
        record_step(made, logging.DEBUG)
        return made
