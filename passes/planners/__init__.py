"""TODO"""

from autockpt.passes.planners.baselines import Baseline, find_baselines
from autockpt.passes.planners.decide import Decision, Look, decide
from autockpt.passes.planners.fixed import judge, look_at
from autockpt.passes.planners.frontier import PLANNERS
from autockpt.passes.planners.refine import HOPELESS, Unseen, settle
from autockpt.passes.planners.schedule import completed

__all__ = [
    "HOPELESS",
    "PLANNERS",
    "Baseline",
    "Decision",
    "Look",
    "Unseen",
    "completed",
    "decide",
    "find_baselines",
    "judge",
    "look_at",
    "settle",
]
