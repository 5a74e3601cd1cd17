"""TODO"""

from autockpt.passes.planners.baselines import Baseline, find_baselines
from autockpt.passes.planners.decide import CompiledPeak, Decision, decide
from autockpt.passes.planners.fixed import check_fixed, decide_fixed
from autockpt.passes.planners.frontier import PLANNERS
from autockpt.passes.planners.refine import DryRunFailed, is_hopeless, refine

__all__ = [
    "PLANNERS",
    "Baseline",
    "CompiledPeak",
    "Decision",
    "DryRunFailed",
    "check_fixed",
    "decide",
    "decide_fixed",
    "find_baselines",
    "is_hopeless",
    "refine",
]
