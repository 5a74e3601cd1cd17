"""What an analysis is asked, the step aside: budget, device, and how much is wanted.

`--set batch=32 seq=4096`: arguments of a factory, checked against what it takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autockpt.budget import check_budget
from autockpt.cost_models import DeviceProfile, ProfileError, load_profile
from autockpt.errors import AutockptError, OptionError
from autockpt.machine import default_device, find_profile, with_tf32
from autockpt.plans import PlanFile
from autockpt.units import Progress


@dataclass(frozen=True)
class Question:
    memory_budget: int | float | str | None = None
    device: str | None = None
    optimizer: str | None = None
    lower: bool = False
    plan: PlanFile | None = None
    solve_seconds: float = 10.0
    around: bool = True
    """Whether the plans beside the chosen one are wanted too."""
    progress: Progress = lambda _: None

    def __post_init__(self) -> None:
        if self.memory_budget is not None:
            try:
                check_budget(self.memory_budget)
            except ValueError as error:
                raise OptionError(f"memory_budget={self.memory_budget!r} {error}") from None

    @property
    def profile(self) -> DeviceProfile:
        if self.device is None:
            return find_profile(default_device())
        try:
            return with_tf32(load_profile(self.device))
        except ProfileError as error:
            raise OptionError(f"device: {error}") from None


BATCH = ("batch", "batch_size", "bs")
SEQUENCE = ("seq", "sequence", "sequence_length", "seq_len", "seqlen", "seq_length", "length")


def check_settings(factory: Callable[..., Any], settings: Mapping[str, Any], target: str) -> None:
    taken = _parameters(factory)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values()):
        return
    for name in settings:
        if name not in taken:
            known = f"takes {', '.join(taken)}" if taken else "takes no arguments"
            raise AutockptError(f"--set {name}: {target} {known}")


def numbers(factory: Callable[..., Any], settings: Mapping[str, Any], names: Sequence[str]) -> tuple[str, int] | None:
    """The first of these names that the factory takes, and its whole number now."""
    for name, parameter in _parameters(factory).items():
        if name in names:
            value = settings.get(name, parameter.default)
            if isinstance(value, int) and not isinstance(value, bool):
                return name, value
    return None


def _parameters(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return {}
