"""Warm start: a graph that an earlier process planned and compiled is found in AOTAutograd's cache, plan and code.

Nothing is traced into a joint graph, planned or run dry. AOTAutograd's key is made before there is a plan, so it cannot
contain one. It contains the random name of an entry instead, which is stored with the plan's figures under a key of
ours: the graph as Dynamo captured it, and what its plan depends on. The name is used only where the plan that belongs
to it is the one to run now: the graph is the whole step, no stored step has another plan for it, the option
`memory_budget` is the same, and what the budget leaves for the graph is, too. Live bytes outside of a graph differ a
little from run to run: a plan that still fits is taken if that differs by at most 0.4 %, and the fastest plan of all
wherever it fits.

In any other case the name is new and nothing can be found under it. Graphs with dynamic sizes are always planned:
their plans come with guards, and their ranges depend on earlier compilations.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from autockpt.inductor import CacheEntry, JointModule, caches_autograd
from autockpt.machine import device_available, timing_conditions
from autockpt.partition import Choice, FixedPlan, Partitioner, choose, record_stored
from autockpt.passes.problem import Budget, Outcome
from autockpt.step.graph import StepGraph
from autockpt.step.stored.graph_file import StoredGraphPlan, StoredOption, read_graph, write_graph
from autockpt.step.variant import Compiled, Variant

if TYPE_CHECKING:
    from pathlib import Path

    from autockpt.step.calls.ledger import Ledger

_TOLERANCE = 2**-8
"""Share of what the budget leaves for a graph by which that may differ between two processes."""
_FREE = "free memory"


@dataclass
class WarmStart:
    graph: StepGraph
    partitioner: Partitioner
    ledger: Ledger
    folder: Path
    key: str
    stored: StoredGraphPlan | None
    """What may be used now."""
    entry: CacheEntry

    @staticmethod
    def of(
        graph: StepGraph, partitioner: Partitioner, ledger: Ledger, loss_bytes: int, folder: Path | None
    ) -> WarmStart | None:
        """None where AOTAutograd's cache is not to be used."""
        captured, request = graph.captured, graph.request
        if folder is None or request.check_recomputed or captured.is_dynamic or not captured.needs_gradient:
            return None
        if not caches_autograd() or not device_available(ledger.device):
            return None
        key = _key(graph, partitioner, loss_bytes, ledger.device)
        stored = read_graph(folder, key)
        if stored is not None and not _holds(stored, graph, partitioner.request.setup.budget, ledger):
            stored = None
        entry = CacheEntry.new() if stored is None else CacheEntry(stored.entry)
        return WarmStart(graph, partitioner, ledger, folder, key, stored, entry)

    def finish(self, compiled: Compiled) -> Variant | None:
        """The variant that was compiled, or found; None where there is none. To be called after the compilation."""
        if self.stored is not None and self.entry.is_found:
            return self._found(compiled, self.stored)
        recorded = self.partitioner.recorded
        if not recorded:
            return None
        variant = Variant.of(compiled, recorded[0])
        self._store(variant)
        return variant

    def _found(self, compiled: Compiled, stored: StoredGraphPlan) -> Variant:
        self.ledger.stored.enter(self.graph, stored.step_key)
        made = record_stored(stored.figures, self._rebuild)
        self.partitioner.recorded.append(made)
        return Variant(stored.option.option, compiled, made)

    def _rebuild(self) -> Choice:
        """The decision for the stored plan, which is verified against the joint graph: traced once more."""
        assert self.stored is not None
        figures = self.stored.figures
        found: list[Choice] = []
        request = replace(self.partitioner.request, fixed=FixedPlan(figures.plan, figures.method))

        def look(joint: JointModule) -> None:
            found.append(choose(joint, request))

        self.graph.visit(look)
        (choice,) = found
        # Compared with all other plans when it was made; here it is the only one.
        decision = replace(choice.decision, outcome=figures.verdict, budget_bytes=figures.budget_bytes)
        return replace(choice, decision=decision)

    def _store(self, variant: Variant) -> None:
        made, graph = variant.made, self.graph
        is_final = graph.holds_step and not graph.from_step
        if not is_final or graph.key is None or made.sizes is not None or len(self.partitioner.recorded) != 1:
            return
        if made.outcome is Outcome.OVER_BUDGET:
            return
        write_graph(
            self.folder,
            StoredGraphPlan(
                key=self.key,
                entry=self.entry.name,
                step_key=graph.key,
                available_bytes=self.partitioner.request.setup.budget.total_bytes,
                figures=made.figures,
                option=StoredOption.of(variant.option),
            ),
        )


def _key(graph: StepGraph, partitioner: Partitioner, loss_bytes: int, device: torch.device) -> str:
    budget: Any = graph.request.setup.budget
    asked = (
        graph.captured.description,
        partitioner.key,
        # What is free differs in every process; whether a plan may be used then depends on `available_bytes`.
        _FREE if budget.free_bytes is not None else repr(budget),
        repr((graph.request.dry_run, graph.holds_step, loss_bytes)),
        timing_conditions(device),
    )
    return hashlib.sha256("\n".join(asked).encode()).hexdigest()[:32]


def _holds(stored: StoredGraphPlan, graph: StepGraph, budget: Budget, ledger: Ledger) -> bool:
    """Whether the stored plan is the one that this graph would be given now."""
    if graph.folder is None or ledger.stored.is_taken(stored.step_key):
        return False
    if stored.figures.verdict is Outcome.OVER_BUDGET or ledger.stored.peek(graph, stored.step_key) is not None:
        return False
    return graph.holds_step and _fits(stored, budget)


def _fits(stored: StoredGraphPlan, budget: Budget) -> bool:
    now, then = budget.total_bytes, stored.available_bytes
    if now is None or then is None:
        return now == then
    if stored.figures.needed_bytes > now:
        return False
    if stored.figures.verdict is Outcome.FASTEST:
        return True
    return abs(now - then) <= _TOLERANCE * then
