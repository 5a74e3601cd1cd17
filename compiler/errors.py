"""Errors that reach the user as themselves.

Dynamo wraps whatever a backend raises into `BackendCompilerFailed`, except its own `ShortenTraceback`. A user
who catches `autockpt.BudgetError` must get one, so ours descend from that class.
"""

from __future__ import annotations

from torch._dynamo.exc import ShortenTraceback


class AutockptError(ShortenTraceback):
    """Everything that autockpt raises on purpose."""

    def __init__(self, message: str) -> None:
        super().__init__(message, first_useful_frame=None)
        self.message = message

    def __str__(self) -> str:
        """Without what Dynamo appends on the way, which is about debugging Dynamo."""
        return self.message


class OptionError(AutockptError, ValueError):
    """An option that autockpt does not know or cannot use."""


class PlanError(AutockptError, ValueError):
    """A plan that cannot be read, written or used for the graph in hand."""


class BudgetError(AutockptError):
    """No plan fits the budget."""

    def __init__(self, message: str, budget_bytes: int, min_peak_bytes: int) -> None:
        super().__init__(message)
        self.budget_bytes = budget_bytes
        self.min_peak_bytes = min_peak_bytes
        """The lowest peak that any plan was found to have."""
