"""autockpt: a training step that stays inside its memory budget, as fast as that allows, with the same gradients."""

from autockpt.analysis import Analysis
from autockpt.analyze import analyze
from autockpt.backend import Backend
from autockpt.decisions import GraphDecision, decisions
from autockpt.errors import AutockptError, BudgetError, OptionError, PlanError
from autockpt.options import Options
from autockpt.plan_file import Plan

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
