"""What the ledger says to people."""

from __future__ import annotations

import logging
import warnings

from autockpt.units import format_size

log = logging.getLogger("autockpt")


def warn_unplanned_step(error: Exception) -> None:
    """Something of ours failed: training goes on, every graph by its first variant."""
    log.debug("the step could not be planned", exc_info=error)
    warnings.warn(
        f"autockpt could not plan the step as a whole; every graph runs the plan it was compiled with, and several "
        f"of them may exceed the budget. Reason: {type(error).__name__}: {error}. Please report it with the output "
        f'of TORCH_LOGS="+autockpt".',
        RuntimeWarning,
        stacklevel=3,
    )


def warn_tightened(missing_bytes: int, budget_bytes: int) -> None:
    """`on_oom="replan"` took effect."""
    warnings.warn(
        f"autockpt: memory ran out; {format_size(missing_bytes)} were missing. The budget is lowered to "
        f"{format_size(budget_bytes)}, and the step is planned again before it runs next",
        RuntimeWarning,
        stacklevel=2,
    )
