"""autockpt: a training step that stays inside its memory budget, as fast as that allows, with the same gradients."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autockpt.analysis import Analysis, analyze
    from autockpt.backend import Backend
    from autockpt.enabling import disable, enable
    from autockpt.errors import AutockptError, BudgetError, OptionError, PlanError, RecomputedError
    from autockpt.options import Options
    from autockpt.partition import GraphDecision, decisions
    from autockpt.plans import PlanFile as Plan
    from autockpt.step import StepDecision, step_decision
    from autockpt.vouch import allow_recompute


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
    "RecomputedError",
    "StepDecision",
    "allow_recompute",
    "analyze",
    "decisions",
    "disable",
    "enable",
    "step_decision",
]
__version__ = "0.1.0"

_MODULES = {
    "Analysis": ("analysis", "Analysis"),
    "AutockptError": ("errors", "AutockptError"),
    "Backend": ("backend", "Backend"),
    "BudgetError": ("errors", "BudgetError"),
    "GraphDecision": ("partition", "GraphDecision"),
    "OptionError": ("errors", "OptionError"),
    "Options": ("options", "Options"),
    "Plan": ("plans", "PlanFile"),
    "PlanError": ("errors", "PlanError"),
    "RecomputedError": ("errors", "RecomputedError"),
    "StepDecision": ("step", "StepDecision"),
    "allow_recompute": ("vouch", "allow_recompute"),
    "analyze": ("analysis", "analyze"),
    "decisions": ("partition", "decisions"),
    "disable": ("enabling", "disable"),
    "enable": ("enabling", "enable"),
    "step_decision": ("step", "step_decision"),
}
"""Module and attribute of each public name; imported on first use, as most programs need few of them."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _MODULES[name]
    return getattr(import_module(f"{__name__}.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
