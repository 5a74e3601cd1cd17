"""autockpt: a training step that stays inside its memory budget, as fast as that allows, with the same gradients."""

from autockpt.backend import Backend
from autockpt.decisions import GraphDecision, decisions
from autockpt.errors import AutockptError, BudgetError, OptionError
from autockpt.options import Options
from autockpt.passes.plan import Plan

__all__ = [
    "AutockptError",
    "Backend",
    "BudgetError",
    "GraphDecision",
    "OptionError",
    "Options",
    "Plan",
    "decisions",
]
__version__ = "0.1.0"
