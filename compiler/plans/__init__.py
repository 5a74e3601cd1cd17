"""TODO"""

from autockpt.plans.diff import GraphDiff, compare, diff_json
from autockpt.plans.graph_plan import GraphPlan
from autockpt.plans.plan import Plan

__all__ = [
    "GraphDiff",
    "GraphPlan",
    "Plan",
    "compare",
    "diff_json",
]
