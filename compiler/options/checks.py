"""What each option accepts: a check that raises ValueError with what is wrong, and what would be right."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

from autockpt.cost_models import ProfileError, load_profile
from autockpt.errors import OptionError, PlanError
from autockpt.inductor import inductor_modes
from autockpt.optimizers import OPTIMIZERS, check_optimizer
from autockpt.options.budget import ACCEPTED, check_budget
from autockpt.passes.planners import PLANNERS
from autockpt.plans import PlanFile
from autockpt.units import parse_size

LOWERINGS = ("inductor", "eager")
COSTS = ("profile", "measured")
ON_INFEASIBLE = ("error", "minimum")
ON_OOM = ("explain", "replan")
SCOPES = ("step", "graph")


def _one_of(*choices: str) -> tuple[Callable[[Any], None], str]:
    def check(value: Any) -> None:
        if value not in choices:
            raise ValueError("is none of the choices")

    *others, last = (f'"{choice}"' for choice in choices)
    return check, f"{', '.join(others)} or {last}"


def _reserve(value: Any) -> None:
    if isinstance(value, str):
        parse_size(value)
    elif isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"is a {type(value).__name__}")
    elif value < 0:
        raise ValueError("is negative")


def _seconds(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"is a {type(value).__name__}")
    if not (math.isfinite(value) and value > 0):
        raise ValueError("is not a positive number of seconds")


def _device(value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise ValueError(f"is a {type(value).__name__}")
    try:
        load_profile(value)
    except ProfileError as error:
        raise ValueError(f"cannot be used: {error}") from None


def _mode(value: Any) -> None:
    if value is not None and (not isinstance(value, str) or value not in inductor_modes()):
        raise ValueError("is no mode of Inductor")


def _optimizer(value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise ValueError(f"is a {type(value).__name__}")
    try:
        check_optimizer(value)
    except OptionError:
        raise ValueError("is not known") from None


def _truth(value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError("is not a truth value")


def _sync(value: Any) -> None:
    if value is not False and value != "auto":
        raise ValueError("is none of the choices")


def _offload(value: Any) -> bool | None:
    if value is None:
        return False
    if isinstance(value, str):
        if not parse_size(value):
            raise ValueError("is no memory at all")
    elif not isinstance(value, bool):
        raise ValueError(f"is a {type(value).__name__}")
    return None


def _size(value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"is a {type(value).__name__}")
    if value is not None and value < 1:
        raise ValueError("is not positive")


def _plan(value: Any) -> PlanFile | None:
    if value is None or isinstance(value, PlanFile):
        return value
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f"is a {type(value).__name__}")
    try:
        return PlanFile.load(value)
    except PlanError as error:
        raise ValueError(f"is refused: {error}") from None


CHECKS: dict[str, tuple[Callable[[Any], object], str]] = {
    "memory_budget": (check_budget, ACCEPTED),
    "reserve": (_reserve, 'bytes as an int or a size such as "2GiB"'),
    "planner": _one_of(*PLANNERS),
    "solve_seconds": (_seconds, "a positive number of seconds"),
    "device": (_device, "the name of a shipped device profile or the path of one"),
    "cost": _one_of(*COSTS),
    "offload": (_offload, 'True, False, or the most host memory as a size such as "64GiB"'),
    "lower": _one_of(*LOWERINGS),
    "on_infeasible": _one_of(*ON_INFEASIBLE),
    "optimizer": (_optimizer, f"None or one of {OPTIMIZERS}"),
    "on_oom": _one_of(*ON_OOM),
    "plan": (_plan, "a plan, or the path of one that was saved"),
    "closed_loop": (_truth, "True or False"),
    "scope": _one_of(*SCOPES),
    "max_unbacked": (_size, "a positive whole number, the largest size that depends on data"),
    "check_recomputed": (_truth, "True or False"),
    "sync": (_sync, '"auto" or False'),
    "mode": (_mode, " or ".join(f'"{mode}"' for mode in inductor_modes())),
}
"""By the name of the option."""
