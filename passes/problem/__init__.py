"""The planning problem of a joint graph (costs, constraints, bounds), plans for it and their checks.

Imports `graph` and `cost_models`.
"""

from autockpt.passes.problem.cut_points import cut_point_values, savable_cut_points
from autockpt.passes.problem.gc import gc_paused
from autockpt.passes.problem.layout import copied_bytes, copied_views, is_channels_last, is_gathered, is_reshaped
from autockpt.passes.problem.must_save import find_must_save, held_operators, is_held
from autockpt.passes.problem.offload import (
    first_backward_uses,
    forward_order,
    last_forward_uses,
    may_offload,
    with_tags,
)
from autockpt.passes.problem.plan import (
    CHECKED_MARGIN,
    UNCHECKED_MARGIN,
    Budget,
    InductorRules,
    Lowering,
    Offload,
    Outcome,
    Plan,
    Problem,
    Setup,
)
from autockpt.passes.problem.plan_writer import PlanWriter
from autockpt.passes.problem.price import find_workspaces, price, work_of_value
from autockpt.passes.problem.schedule import Scheduler, planned_collectives, plans_saving, savable_set
from autockpt.passes.problem.unavoidable import boundary_bytes, unavoidable_bytes
from autockpt.passes.problem.verify import BrokenPlan, require_none, verify

__all__ = [
    "CHECKED_MARGIN",
    "UNCHECKED_MARGIN",
    "BrokenPlan",
    "Budget",
    "InductorRules",
    "Lowering",
    "Offload",
    "Outcome",
    "Plan",
    "PlanWriter",
    "Problem",
    "Scheduler",
    "Setup",
    "boundary_bytes",
    "copied_bytes",
    "copied_views",
    "cut_point_values",
    "find_must_save",
    "find_workspaces",
    "first_backward_uses",
    "forward_order",
    "gc_paused",
    "held_operators",
    "is_channels_last",
    "is_gathered",
    "is_held",
    "is_reshaped",
    "last_forward_uses",
    "may_offload",
    "planned_collectives",
    "plans_saving",
    "price",
    "require_none",
    "savable_cut_points",
    "savable_set",
    "unavoidable_bytes",
    "verify",
    "with_tags",
    "work_of_value",
]
