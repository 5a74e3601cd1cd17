"""TODO"""

from autockpt.plans.diff import GraphDiff, compare, diff_json
from autockpt.plans.graph_plan import GraphPlan
from autockpt.plans.plan_file import PlanFile

__all__ = [
    "GraphDiff",
    "GraphPlan",
    "PlanFile",
    "compare",
    "diff_json",
]
