"""Options are read once, here, and travel as a value. A wrong one raises before anything is traced."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from autockpt.budget import ACCEPTED, check_budget
from autockpt.cost_models import ProfileError, load_profile, shown
from autockpt.errors import OptionError, PlanError
from autockpt.inductor import ENABLE_VARIABLE, inductor_modes, inductor_options
from autockpt.machine import CACHE_VARIABLE
from autockpt.optimizers import OPTIMIZERS, check_optimizer
from autockpt.passes.planners import PLANNERS
from autockpt.plans import PlanFile
from autockpt.units import parse_size

LOWERINGS = ("inductor", "eager")
COSTS = ("profile", "measured")
ON_INFEASIBLE = ("error", "minimum")
ON_OOM = ("explain", "replan")
SCOPES = ("step", "graph")


@dataclass(frozen=True)
class Options:
    """The options of `torch.compile(..., backend="autockpt", options={...})`, checked."""

    memory_budget: int | float | str = "auto"
    reserve: int | str = 0
    planner: str = "auto"
    solve_seconds: float = 60.0
    device: str | None = None
    cost: str = "profile"
    """Where seconds come from: the device's profile, or timings of the graph in hand."""
    offload: bool = False
    lower: str = "inductor"
    on_infeasible: str = "error"
    optimizer: str | None = None
    """Its name, where it is made after the first step: its state then counts from the start."""
    on_oom: str = "explain"
    """On `torch.OutOfMemoryError`: say what was live, or lower the budget and plan the step again, too."""
    plan: PlanFile | None = None
    """Given as itself, or as the path of a file; that is read here, once, and a file that changes is another plan."""
    closed_loop: bool = True
    scope: str = "step"
    """What the budget is for: all that is live on the device in a training step, or each graph alone."""
    max_unbacked: int | None = None
    """The largest size that depends on data (masks, routing); the budget holds up to it."""
    check_recomputed: bool = False
    mode: str | None = None
    inductor: Mapping[str, Any] = field(default_factory=dict)
    """Passed on as they are."""

    def __post_init__(self) -> None:
        for name, (check, accepted) in _CHECKS.items():
            value = getattr(self, name)
            try:
                held = check(value)
            except ValueError as error:
                raise OptionError(f"option {name}={shown(value)} {error}; accepted is {accepted}") from None
            if held is not None:
                object.__setattr__(self, name, held)

    @classmethod
    def parse(cls, raw: Mapping[str, Any] | None, mode: str | None = None) -> Options:
        """From the dictionary that torch.compile passes on, over what the environment says."""
        given = {**_from_environment(), **(raw or {})}
        if mode is not None:
            given["mode"] = mode
        ours = {name: given.pop(name) for name in KNOWN if name in given}
        _check_inductor(given)
        return cls(**ours, inductor=given)

    @property
    def reserve_bytes(self) -> int:
        return parse_size(self.reserve) if isinstance(self.reserve, str) else self.reserve

    def inductor_patches(self) -> dict[str, Any]:
        mode = inductor_modes()[self.mode] if self.mode else {}
        return {**mode, **{name.replace("-", "_"): value for name, value in self.inductor.items()}}


_PREFIX = "AUTOCKPT_"
_OTHER_VARIABLES = (CACHE_VARIABLE, ENABLE_VARIABLE)
KNOWN = tuple(option.name for option in fields(Options) if option.name != "inductor")


def _from_environment() -> dict[str, Any]:
    """AUTOCKPT_MEMORY_BUDGET and the like, for frameworks that pass only the name of a backend."""
    found = {}
    for variable, text in os.environ.items():
        if variable.startswith(_PREFIX) and variable not in _OTHER_VARIABLES:
            name = variable.removeprefix(_PREFIX).lower()
            if name not in KNOWN:
                accepted = ", ".join([*(f"{_PREFIX}{known.upper()}" for known in KNOWN), *_OTHER_VARIABLES])
                raise OptionError(f"unknown environment variable {variable[:_LONGEST_NAME]}; accepted are {accepted}")
            found[name] = _plain(text)
    return found


def _plain(text: str) -> Any:
    """A number or a truth value where the text is one."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


_OURS = ("custom_partitioner_fn", "custom-partitioner-fn")
"""Options of Inductor that autockpt sets."""
_LONGEST_NAME = 100


def _check_inductor(given: Mapping[str, Any]) -> None:
    inductor = {name.replace("-", "_") for name in inductor_options()}
    for name in given:
        if name in _OURS:
            raise OptionError(
                f"option {name}: autockpt partitions the graph itself; leave it out, or use Inductor alone"
            )
        if not isinstance(name, str) or name.replace("-", "_") not in inductor:
            near = difflib.get_close_matches(str(name)[:_LONGEST_NAME], [*KNOWN, *sorted(inductor)], n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            known = ", ".join(KNOWN)
            raise OptionError(f"unknown option {shown(name)}{hint}; accepted are {known} and every option of Inductor")


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


def _not_yet(value: Any) -> None:
    if value not in (None, False):
        raise ValueError("is not supported yet")


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


_CHECKS: dict[str, tuple[Callable[[Any], object], str]] = {
    "memory_budget": (check_budget, ACCEPTED),
    "reserve": (_reserve, 'bytes as an int or a size such as "2GiB"'),
    "planner": _one_of(*PLANNERS),
    "solve_seconds": (_seconds, "a positive number of seconds"),
    "device": (_device, "the name of a shipped device profile or the path of one"),
    "cost": _one_of(*COSTS),
    "offload": (_not_yet, "False"),
    "lower": _one_of(*LOWERINGS),
    "on_infeasible": _one_of(*ON_INFEASIBLE),
    "optimizer": (_optimizer, f"None or one of {OPTIMIZERS}"),
    "on_oom": _one_of(*ON_OOM),
    "plan": (_plan, "a plan, or the path of one that was saved"),
    "closed_loop": (_truth, "True or False"),
    "scope": _one_of(*SCOPES),
    "max_unbacked": (_size, "a positive whole number, the largest size that depends on data"),
    "check_recomputed": (_truth, "True or False"),
    "mode": (_mode, " or ".join(f'"{mode}"' for mode in inductor_modes())),
}
