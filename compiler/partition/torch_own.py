"""Inductor's own partition, where it fits the budget: a plan must not be slower than no plan.

Its loops may fuse across matmuls and its buffers are reused as Inductor likes, which our plans give up to keep their
order. Where memory is not short there is nothing to give it up for: on the CPU steps of it took a few hundredths less
than those of plans of ours that are as fast by the cost model.

The decision records the plan of ours that keeps the same values; its lowered peak is of what runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch._functorch.config as functorch_config
from torch import fx

from autockpt.inductor import DryRun, Modules, copy_joint, mark_torch_own, saved_by, torch_partition
from autockpt.passes.forecast import TORCH_PARTITION, Candidate
from autockpt.passes.planners import Decision, Look, completed
from autockpt.passes.problem import Outcome

Looker = Callable[[Modules], DryRun]
_LIKELY = 1.02
"""So many times the budget its forecast may be to be worth a look."""
_ROOM = 0.75
"""Share of the fastest plan's peak below which it never fitted, and is not asked for."""
_FREEDOM = 1.03
"""What it saves, where the cost model sees none of it."""


@dataclass(frozen=True)
class OwnPartition:
    decision: Decision
    modules: Modules
    lowered: DryRun


def own_partition(
    joint: fx.GraphModule, decision: Decision, arguments: dict[str, Any], look: Looker
) -> OwnPartition | None:
    """The decision for it, if it fits and nothing says that the plan is faster."""
    cap = decision.budget_bytes
    if not has_room(decision):
        return None
    # Its default choice, whatever is set: on every rank alone, and nothing random drawn again.
    settings = {"activation_memory_budget": 1.0, "aggressive_recomputation": False, "_sync_decision_cross_ranks": False}
    with functorch_config.patch(settings):
        modules = torch_partition(copy_joint(joint), (), **arguments)
    candidate = likely(decision, saved_by(joint, modules))
    if candidate is None:
        return None
    # As ordinary modules: a lazy one and a copy of it have different keys in Inductor's cache.
    modules = fx.GraphModule(modules[0], modules[0].graph), fx.GraphModule(modules[1], modules[1].graph)
    mark_torch_own(*modules)
    lowered = look(modules)
    seen = Look(
        candidate, decision.frontier.peak_bytes(candidate), lowered.peak_bytes + decision.forecast.graph_input_bytes
    )
    if seen.needed_bytes > cap:
        return None
    made = replace(decision.instead(candidate, cap, (seen,)), outcome=decision.outcome)
    return OwnPartition(made, modules, lowered)


def has_room(decision: Decision) -> bool:
    """Whether the budget is one that it may fit."""
    return decision.outcome is not Outcome.OVER_BUDGET and decision.budget_bytes >= _ROOM * decision.fastest_bytes


def likely(decision: Decision, saved: frozenset[str], room: float = _LIKELY) -> Candidate | None:
    """The plan of ours that keeps what it saves, if by the forecast it fits so many budgets and is no slower."""
    frontier = decision.frontier
    candidate = frontier.priced(completed(decision.problem, saved), TORCH_PARTITION)
    slower = frontier.simulator.step_seconds(candidate.plan) > _FREEDOM * decision.forecast.step_seconds
    fits = frontier.peak_bytes(candidate) <= room * decision.budget_bytes
    return candidate if fits and not slower else None
