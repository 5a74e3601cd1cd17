"""What is asked of the pipeline for one joint graph, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import torch

from autockpt.inductor import DryRun, JointModule, Modules
from autockpt.machine import GraphTimings
from autockpt.partition.recomputed import labels
from autockpt.passes.forecast import TORCH_PARTITION, Candidate
from autockpt.passes.graph import gathers_again
from autockpt.passes.planners import Decision
from autockpt.passes.problem import Plan, Setup
from autockpt.passes.sizes import SizeRange
from autockpt.plans import PlanFile
from autockpt.progress import report
from autockpt.units import Progress


@dataclass(frozen=True)
class FixedPlan:
    """A plan that was found for the same graph before."""

    plan: Plan
    method: str

    @staticmethod
    def of(candidate: Candidate) -> FixedPlan:
        return FixedPlan(candidate.plan, candidate.method)


class Gathers(Enum):
    """What may become of gathers of the forward whose results the backward reads."""

    SAVED = "saved"
    EITHER = "whichever is faster within the budget"
    AGAIN = "run again in the backward"


@dataclass(frozen=True)
class Request:
    """How to choose a plan for a joint graph."""

    setup: Setup
    dry_run: bool = True
    """Whether to run the generated code dry before a plan is taken."""
    believe_forecast: bool = False
    """Without dry runs: take torch's own partition on its forecast alone. Only where nothing will run."""
    plan: PlanFile | None = None
    """Use this plan instead of planning."""
    fixed: FixedPlan | None = None
    """Use this plan; whoever asks has compared it with the budget."""
    gathers: Gathers = Gathers.SAVED
    """Other than saved only where all ranks of the job have agreed to ask for the same."""
    cost: str = "profile"
    max_unbacked: int | None = None
    """The largest size that depends on data, as the user states it; None where torch's bounds are to be taken."""
    timings: Path | None = None
    """The folder of measured operator times; needed where `cost` measures any."""
    check_recomputed: bool = False
    """Whether the step compares every recomputed value with what the forward computed."""
    progress: Progress = field(default=report, repr=False)


@dataclass(frozen=True)
class DryRunRecord:
    plan: Plan
    is_torch_own: bool
    result: DryRun
    seconds: float
    """To generate the code and to run it dry."""


@dataclass(frozen=True)
class Choice:
    decision: Decision
    timings: GraphTimings = field(default_factory=GraphTimings)
    dry_runs: tuple[DryRunRecord, ...] = ()
    """All of them, in order, also of plans that were not taken."""
    failure: str = ""
    """Why no plan could be run dry."""
    sizes: SizeRange | None = None
    """The dynamic sizes for which the plan holds; None where all are static, or no budget limits them."""

    @property
    def gathers_again(self) -> bool:
        """Whether gathers of the forward run once more in the backward."""
        return gathers_again(self.decision.problem.graph)

    @property
    def is_torch_own(self) -> bool:
        return self.decision.candidate.method == TORCH_PARTITION

    @property
    def dry_run(self) -> DryRun | None:
        """Of the partition that was chosen."""
        return next((run.result for run in self.dry_runs if self._is_taken(run)), None)

    @property
    def rejected_seconds(self) -> float:
        """Spent on dry runs of other partitions: the code of the chosen one is found in Inductor's cache."""
        return sum(run.seconds for run in self.dry_runs if not self._is_taken(run))

    def _is_taken(self, run: DryRunRecord) -> bool:
        return run.plan == self.decision.plan and run.is_torch_own == self.is_torch_own

    def modules(self, joint: JointModule, check_recomputed: bool = False) -> Modules:
        """Forward and backward of the chosen partition; with the comparisons of `check_recomputed`, of its plan."""
        if check_recomputed:
            operator = torch.ops.autockpt.check_recomputed.default
            return joint.checked_modules(self.decision.plan, operator, labels(self.decision))
        return joint.torch_own.modules if self.is_torch_own else joint.modules(self.decision.plan)
