"""From a joint graph to the two modules that run: choose a plan, check it against the budget, record it.

Where anything fails, torch's own partition runs and one warning says so: training never breaks because of autockpt.
"""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import torch

import autockpt
from autockpt import cost_models, passes
from autockpt.errors import AutockptError, BudgetError
from autockpt.inductor import JointModule, Modules
from autockpt.machine import device_available
from autockpt.offload import prepare
from autockpt.partition.choice import Choice, Request
from autockpt.partition.choose import choose, unusable
from autockpt.partition.compilations import compilations_left, record_refusal
from autockpt.partition.messages import infeasible, over_budget
from autockpt.partition.record import GraphDecision, record
from autockpt.passes.fx import Shapes
from autockpt.passes.problem import Budget, Outcome
from autockpt.passes.sizes import SizeRange

log = logging.getLogger("autockpt")
_ANY_BUDGET = Budget(fraction=1.0)
_LAST_COMPILATION = (
    "autockpt: Dynamo compiles this function for the last time (torch._dynamo.config.recompile_limit); the budget "
    "holds for {sizes}, and calls with other sizes run uncompiled, WITHOUT a memory budget. Raise the limit"
)
_NO_GUARD = "autockpt: the budget holds for {sizes}; nothing checks the sizes of calls, because the guards are complete"

Select = Callable[[JointModule, Request], Choice]


@dataclass(frozen=True)
class Partitioner:
    """Partitions the joint graphs of one compiled function."""

    request: Request
    on_infeasible: str
    recorded: list[GraphDecision] = field(default_factory=list, repr=False)
    select: Select = choose
    outside_bytes: int = 0
    """Live outside of the graph, and already taken off the budget in the request."""
    _ranges: list[tuple[Shapes, SizeRange]] = field(default_factory=list, repr=False)

    def __call__(self, joint: JointModule) -> Modules:
        try:
            joint = replace(joint, max_unbacked=self.request.max_unbacked)
            choice = self.select(joint, self.request)
            self._check_budget(choice)
            modules = choice.modules(joint, self.request.check_recomputed)
            self.recorded.append(record(choice))
            _prepare_host(choice)
            if choice.sizes is not None and joint.shapes is not None:
                self._ranges.append((joint.shapes, choice.sizes))
            return modules
        except AutockptError:
            raise
        except Exception as error:
            log.debug("could not plan", exc_info=True)
            if self.request.plan is not None:
                raise unusable(error) from error
            _warn_fallback(error)
            return joint.fallback()

    def guard(self) -> None:
        """Let Dynamo check at every call that its sizes are those for which the plans hold.

        After the modules were compiled: Inductor stores the guards that exist when it compiles beside the cached code,
        and would add those of this budget to every graph that finds it.
        """
        for shapes, sizes in self._ranges:
            if shapes.is_complete and sizes.conditions:
                warnings.warn(_NO_GUARD.format(sizes=sizes), RuntimeWarning, stacklevel=2)
                continue
            shapes.require(sizes.conditions)
            if sizes.conditions and compilations_left() <= 1:
                warnings.warn(_LAST_COMPILATION.format(sizes=sizes), RuntimeWarning, stacklevel=2)

    @property
    def key(self) -> str:
        """Everything that a plan depends on, for the keys of Inductor's caches, but the budget.

        They hash the partitioned modules, too. What is live outside of a graph comes off its
        budget, and differs a little from run to run: a plan that stays the same must find its kernels.
        """
        plan = self.request.plan.digest if self.request.plan else None
        setup = replace(self.request.setup, budget=_ANY_BUDGET)
        request = f"{setup!r} {self.request.cost} {self.request.check_recomputed} {self.request.max_unbacked}"
        return f"autockpt {source_hash()} {request} {self.on_infeasible} {plan}"

    def _check_budget(self, choice: Choice) -> None:
        """Raise where no plan fits, or warn where the user prefers to run at the minimum peak."""
        decision = choice.decision
        if decision.outcome is not Outcome.OVER_BUDGET:
            return
        if self.request.plan is None:
            sizes = choice.sizes.call if choice.sizes is not None else ""
            message, then = infeasible(decision, self.outside_bytes, sizes), "running at the minimum peak"
            min_peak_bytes = decision.needed_bytes
        else:
            message, then = over_budget(decision), "running it all the same"
            min_peak_bytes = decision.min_peak_bytes
        if self.on_infeasible == "error":
            outside_bytes = self.outside_bytes
            record_refusal()
            raise BudgetError(message, decision.budget_bytes + outside_bytes, min_peak_bytes + outside_bytes)
        warnings.warn(f"autockpt: {message}; {then}", RuntimeWarning, stacklevel=2)


def _prepare_host(choice: Choice) -> None:
    """Map, and for a GPU pin, the host memory of the plan now: no step has to."""
    graph = choice.decision.problem.graph
    offloaded = [graph.by_name[name] for name in sorted(choice.decision.plan.on_host)]
    if offloaded and device_available(device := torch.device(offloaded[0].device)):
        prepare(device, [graph.bytes_of(value.name) for value in offloaded])


def _warn_fallback(error: Exception) -> None:
    warnings.warn(
        f"autockpt could not plan this graph and runs torch's own partition, WITHOUT a memory budget. "
        f"Reason: {type(error).__name__}: {error}. Please report it with the output of "
        f'TORCH_LOGS="+autockpt".',
        RuntimeWarning,
        stacklevel=2,
    )


@cache
def source_hash() -> str:
    """Hash of every file that a plan depends on: Inductor's cache must not outlive the planner that filled it."""
    digest = hashlib.sha256(torch.__version__.encode())
    folders = {Path(folder) for package in (autockpt, passes, cost_models) for folder in package.__path__}
    files = {path for folder in folders for path in [*folder.rglob("*.py"), *folder.rglob("*.json")]}
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
