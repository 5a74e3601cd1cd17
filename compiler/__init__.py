"""autockpt: a training step that stays inside its memory budget, as fast as that allows, with the same gradients."""

from autockpt.analysis.analyze import analyze
from autockpt.analysis.result import Analysis
from autockpt.backend import Backend
from autockpt.errors import AutockptError, BudgetError, OptionError, PlanError
from autockpt.options import Options
from autockpt.partition.record import GraphDecision, decisions
from autockpt.plans.plan import Plan

__all__ = [
    "Analysis",
    "AutockptError",
    "Backend",
    "BudgetError",
    "GraphDecision",
    "OptionError",
    "Options",
    "Plan",
    "PlanError",
    "analyze",
    "decisions",
]
__version__ = "0.1.0"
