"""Reads joint fx modules into `JointGraph` and writes plans back as modules: the only sub-package of `passes` with fx.

Imports `graph`, `problem` and `cost_models`.
"""

from autockpt.passes.fx.read import read
from autockpt.passes.fx.regions import take_views_from_operands
from autockpt.passes.fx.shape_env import Shapes
from autockpt.passes.fx.sizes import hint_of, without_rounding
from autockpt.passes.fx.splice import splice
from autockpt.passes.fx.split import Check, UnwritablePlan, compare_by, raise_parts, reorder, unroll, verify_modules
from autockpt.passes.fx.subgraphs import work_of_call

__all__ = [
    "Check",
    "Shapes",
    "UnwritablePlan",
    "compare_by",
    "hint_of",
    "raise_parts",
    "read",
    "reorder",
    "splice",
    "take_views_from_operands",
    "unroll",
    "verify_modules",
    "without_rounding",
    "work_of_call",
]
