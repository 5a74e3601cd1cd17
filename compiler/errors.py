"""Errors that autockpt raises on purpose. Each reaches the user as itself, also out of a compiled step."""

from __future__ import annotations

from autockpt.inductor import AutockptError

__all__ = ["AutockptError", "BudgetError", "OptionError", "PlanError", "RecomputedError"]


class OptionError(AutockptError, ValueError):
    """An option that autockpt does not know or cannot use."""


class PlanError(AutockptError, ValueError):
    """A plan that cannot be read, written or applied to this graph."""


class BudgetError(AutockptError):
    """No plan fits the budget."""

    def __init__(self, message: str, budget_bytes: int, min_peak_bytes: int) -> None:
        super().__init__(message)
        self.budget_bytes = budget_bytes
        self.min_peak_bytes = min_peak_bytes
        """The smallest peak of any plan that was found."""


class RecomputedError(AutockptError):
    """With `check_recomputed`: a recomputed value is not what the forward computed."""
