"""Planners: the frontier that folds over generators of plans, and the decision for a budget.

Imports every other sub-package of `passes` but `fx`, `sizes` and `step`.
"""

from autockpt.passes.planners.baselines import Baseline, find_baselines
from autockpt.passes.planners.decide import CompiledPeak, Decision, decide, needed_bytes, pose, resolve
from autockpt.passes.planners.fixed import check_fixed, decide_fixed
from autockpt.passes.planners.frontier import PLANNERS, Frontier
from autockpt.passes.planners.optimality import Gap
from autockpt.passes.planners.refine import DryRunFailed, is_hopeless, refine

__all__ = [
    "PLANNERS",
    "Baseline",
    "CompiledPeak",
    "Decision",
    "DryRunFailed",
    "Frontier",
    "Gap",
    "check_fixed",
    "decide",
    "decide_fixed",
    "find_baselines",
    "is_hopeless",
    "needed_bytes",
    "pose",
    "refine",
    "resolve",
]
