"""autockpt: a training step that stays inside its memory budget, as fast as that allows, with the same gradients."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autockpt.analysis import Analysis, analyze  # type: ignore[no-redef, unused-ignore]
    from autockpt.backend import Backend
    from autockpt.errors import AutockptError, BudgetError, OptionError, PlanError
    from autockpt.options import Options
    from autockpt.partition import GraphDecision, decisions
    from autockpt.plans import Plan

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

_MODULES = {
    "Analysis": "analysis",
    "AutockptError": "errors",
    "Backend": "backend",
    "BudgetError": "errors",
    "GraphDecision": "partition",
    "OptionError": "errors",
    "Options": "options",
    "Plan": "plans",
    "PlanError": "errors",
    "analyze": "analysis",
    "decisions": "partition",
}
"""Where each public name is defined. Loaded when first used: most programs that import autockpt need few of them."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
