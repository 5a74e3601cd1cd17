"""Plans as files: what was decided for the graphs of a model, saved, checked when it is loaded, and compared.

Imports `passes` and the top-level modules of `autockpt`, no other sub-package.
"""

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
