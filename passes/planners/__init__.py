"""Planners: generators of plans, the frontier that folds over them, and the decision for a budget.

Imports every other sub-package of `passes` but `fx`.
"""

from autockpt.passes.planners.baselines import Baseline, find_baselines
from autockpt.passes.planners.cuts import least_saved_bytes
from autockpt.passes.planners.decide import CompiledPeak, Decision, decide, needed_bytes, pose, resolve
from autockpt.passes.planners.fixed import check_fixed, decide_fixed
from autockpt.passes.planners.frontier import PLANNERS, Frontier
from autockpt.passes.planners.generators import GeneratorFactory
from autockpt.passes.planners.refine import DryRunFailed, is_hopeless, refine

__all__ = [
    "PLANNERS",
    "Baseline",
    "CompiledPeak",
    "Decision",
    "DryRunFailed",
    "Frontier",
    "GeneratorFactory",
    "check_fixed",
    "decide",
    "decide_fixed",
    "find_baselines",
    "is_hopeless",
    "least_saved_bytes",
    "needed_bytes",
    "pose",
    "refine",
    "resolve",
]
