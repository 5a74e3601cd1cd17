"""Where AOTAutograd asks how to divide a joint graph: plan it, write it, or step aside and say so."""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._inductor.custom_graph_pass import CustomPartitionerFn

import autockpt
from autockpt import cost_models, passes
from autockpt.errors import AutockptError, BudgetError
from autockpt.inductor import Modules, read_joint, runnable_calls, tidy, torch_partition
from autockpt.machine import GraphTimings, TimingCache, time_graph
from autockpt.partition.given import judged, over_budget, unusable
from autockpt.partition.messages import infeasible
from autockpt.partition.record import record
from autockpt.partition.torch_own import own_partition
from autockpt.partition.write import Looker, Writer
from autockpt.passes.graph import JointGraph
from autockpt.passes.planners import HOPELESS, Decision, Unseen, decide, look_at, settle
from autockpt.passes.problem import UNCHECKED_MARGIN, Outcome, Setup
from autockpt.plans import PlanFile

log = logging.getLogger("autockpt")


class Partitioner(CustomPartitionerFn):
    """Plans one joint graph at a time. `uuid` keys Inductor's caches: all that a plan depends on is in it."""

    def __init__(
        self,
        setup: Setup,
        on_infeasible: str,
        cost: str,
        timings: Path,
        look: Looker | None = None,
        plan: PlanFile | None = None,
    ) -> None:
        self.setup = setup
        self.on_infeasible = on_infeasible
        self.cost = cost
        self.timings = timings
        """The folder that keeps them."""
        self.look = look
        """Lowers a pair of modules and gives its peak; None where the loop is open."""
        self.plan = plan
        """Given by the user, in the place of planning."""

    def __call__(self, gm: fx.GraphModule, joint_inputs: Sequence[object], **kwargs: Any) -> Modules:
        if not joint_inputs:
            # The body of a higher-order operator comes without inputs; the budget is its caller's.
            return torch_partition(gm, joint_inputs, **kwargs)
        try:
            return self._partition(gm, kwargs)
        except AutockptError:
            raise
        except Exception as error:
            log.debug("could not plan", exc_info=True)
            if self.plan is not None:
                raise unusable(error) from error
            _step_aside(error)
            return torch_partition(gm, joint_inputs, **kwargs)

    def uuid(self) -> str:
        return f"autockpt {source_hash()} {self.setup!r} {self.on_infeasible} {self.cost} {self._plan_digest()}"

    def _plan_digest(self) -> str | None:
        return self.plan.digest if self.plan else None

    def __getstate__(self) -> dict[str, Any]:
        """What Inductor hashes of this object: no folder, and not the graph that `look` holds, new in every process."""
        return {**vars(self), "look": None, "timings": None, "plan": self._plan_digest()}

    def __deepcopy__(self, _: Any) -> Partitioner:
        return self

    def _partition(self, gm: fx.GraphModule, kwargs: dict[str, Any]) -> Modules:
        outputs = kwargs["num_fwd_outputs"]
        parameters = kwargs.get("static_lifetime_input_indices") or ()
        tidy(gm)
        graph = read_joint(gm, outputs, parameters)
        writer = Writer(gm, outputs, parameters)
        measured = time_graph(runnable_calls(gm), graph, self.setup, self.cost, TimingCache(self.timings))
        decision = self._decide(graph, self.setup, measured)
        if self.look is not None:
            if modules := self._own(decision, writer, self.look, kwargs, measured):
                return modules
            decision = self._settle(decision, writer, self.look, measured)
        self._check_budget(decision)
        modules = writer(decision.plan)
        record(decision, writer.looking, measured)
        return modules

    def _decide(self, graph: JointGraph, setup: Setup, measured: GraphTimings) -> Decision:
        if self.plan is None:
            return decide(graph, setup, measured.seconds)
        return judged(self.plan, graph, setup, measured.seconds)

    def _own(
        self, decision: Decision, writer: Writer, look: Looker, arguments: dict[str, Any], measured: GraphTimings
    ) -> Modules | None:
        """Inductor's own partition, if the budget allows it."""
        if self.setup.planner != "auto" or self.plan is not None:
            return None
        try:
            own = own_partition(writer.joint, decision, arguments, partial(writer.lower, look))
        except Exception as error:
            log.warning("Inductor's own partition could not be looked at: %s: %s", type(error).__name__, error)
            log.debug("", exc_info=True)
            return None
        if own is None:
            return None
        writer.looking.lowered[own.decision.plan] = own.lowered
        record(own.decision, writer.looking, measured)
        return own.modules

    def _settle(self, decision: Decision, writer: Writer, look: Looker, measured: GraphTimings) -> Decision:
        """The decision after a look at the lowered step; where it cannot be had, one with a wider margin."""
        if decision.outcome is Outcome.OVER_BUDGET and decision.forecast.peak_bytes > HOPELESS * decision.budget_bytes:
            return decision
        given = decision.forecast.graph_input_bytes
        close = settle if self.plan is None else look_at
        try:
            return close(decision, self.setup.budget, lambda plan: writer.look(plan, look) + given)
        except Unseen as unseen:
            reason = f"{type(unseen.__cause__).__name__}: {unseen.__cause__}"
            log.warning("the lowered step could not be looked at, the budget rests on a forecast: %s", reason)
            log.debug("", exc_info=True)
            writer.looking.trouble = reason
            return self._decide(decision.problem.graph, replace(self.setup, margin=UNCHECKED_MARGIN), measured)

    def _check_budget(self, decision: Decision) -> None:
        if decision.outcome is not Outcome.OVER_BUDGET:
            return
        if self.plan is not None:
            over_budget(decision, self.on_infeasible)
            return
        message = infeasible(decision)
        if self.on_infeasible == "error":
            floor = decision.compiled_bytes or decision.forecast.peak_bytes
            raise BudgetError(message, decision.budget_bytes, floor)
        warnings.warn(f"autockpt: {message}; running at the lowest peak", RuntimeWarning, stacklevel=2)


def _step_aside(error: Exception) -> None:
    """Training never breaks because of us."""
    warnings.warn(
        f"autockpt could not plan this graph and runs Inductor's own partition, WITHOUT a memory budget. "
        f"Reason: {type(error).__name__}: {error}. Please report it with the output of "
        f'TORCH_LOGS="+autockpt".',
        RuntimeWarning,
        stacklevel=2,
    )


@cache
def source_hash() -> str:
    """Of every file that has a say in a plan: a cache must not outlive the planner that filled it."""
    digest = hashlib.sha256(torch.__version__.encode())
    roots = {Path(folder) for package in (autockpt, passes, cost_models) for folder in package.__path__}
    for root in sorted(roots):
        for path in sorted([*root.rglob("*.py"), *root.rglob("*.json")]):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
