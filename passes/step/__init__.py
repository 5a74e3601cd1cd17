"""The step problem: one budget for all calls of all graphs of a training step.

`plan_table` makes the options of one graph, `StepProblem` says which calls are in flight beside which and what is live
outside of them, `solve` chooses an option for each call. Imports `planners`, `intervals`, `forecast`, `problem`.
"""

from autockpt.passes.step.bound import bound_seconds
from autockpt.passes.step.options import BoundPoint, PlanOption, PlanTable
from autockpt.passes.step.problem import MAX_VARIANTS, CallPeaks, Pass, StepCall, StepProblem, calls_from_passes
from autockpt.passes.step.search import option_of, plan_table
from autockpt.passes.step.solve import (
    StepPlan,
    StepRange,
    fastest_choices,
    resolve_budget,
    solve,
    solve_min_peak,
    step_range,
)
from autockpt.passes.step.streams import (
    MAIN,
    Issued,
    PassSeconds,
    StepTime,
    StreamPass,
    StreamRecord,
    StreamWait,
    StreamWork,
    replay,
)

__all__ = [
    "MAIN",
    "MAX_VARIANTS",
    "BoundPoint",
    "CallPeaks",
    "Issued",
    "Pass",
    "PassSeconds",
    "PlanOption",
    "PlanTable",
    "StepCall",
    "StepPlan",
    "StepProblem",
    "StepRange",
    "StepTime",
    "StreamPass",
    "StreamRecord",
    "StreamWait",
    "StreamWork",
    "bound_seconds",
    "calls_from_passes",
    "fastest_choices",
    "option_of",
    "plan_table",
    "replay",
    "resolve_budget",
    "solve",
    "solve_min_peak",
    "step_range",
]
