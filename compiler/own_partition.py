"""Inductor's own partition, where it fits the budget: a plan must not be slower than no plan.

Its loops may fuse across matmuls and its buffers are reused as Inductor likes, which our plans give up to keep their
order. Where memory is not short there is nothing to give it up for: measured on the CPU, steps of it took 0.77 to
0.99 of those of the fastest plan of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch import fx

from autockpt.dry_run import Lowered
from autockpt.order import mark_own
from autockpt.passes.decide import Budget, Decision, Look
from autockpt.passes.keeping import completed
from autockpt.passes.partition_tools import Modules, copy_joint, torch_partition
from autockpt.passes.plan import Outcome

Looker = Callable[[Modules], Lowered]
_LIKELY = 1.05
"""So many times the budget its forecast may be to be worth a look."""


@dataclass(frozen=True)
class OwnPartition:
    decision: Decision
    modules: Modules
    lowered: Lowered


def own_partition(
    joint: fx.GraphModule,
    decision: Decision,
    budget: Budget,
    arguments: dict[str, Any],
    look: Callable[[Modules], Lowered],
) -> OwnPartition | None:
    """The decision for it, if it is asked for a cap and fits, or for the fastest that there is."""
    if decision.outcome is not Outcome.FASTEST or budget.fraction not in (None, 1.0):
        return None
    modules = torch_partition(copy_joint(joint), (), **arguments)
    candidate = decision.frontier.priced(completed(decision.problem, _saved(joint, modules)), "Inductor's own")
    forecast_bytes = decision.frontier.peak_bytes(candidate)
    cap = decision.budget_bytes
    if budget.fraction is None and forecast_bytes > _LIKELY * cap:
        return None
    mark_own(*modules)
    lowered = look(modules)
    seen = Look(candidate, forecast_bytes, lowered.peak_bytes + decision.forecast.given_bytes)
    if budget.fraction is None and seen.needed_bytes > cap:
        return None
    made = decision.instead(candidate, max(cap, seen.needed_bytes), (seen,))
    return OwnPartition(replace(made, outcome=Outcome.FASTEST), modules, lowered)


def _saved(joint: fx.GraphModule, modules: Modules) -> set[str]:
    """Values of the joint graph that cross into the backward."""
    made = {node.name for node in joint.graph.nodes if node.op == "call_function"}
    return made & {node.name for node in modules[1].graph.find_nodes(op="placeholder")}
