"""What an analysis is asked, the step aside: budget, device, and how much is wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from autockpt.budget import check_budget
from autockpt.cost_models import DeviceProfile, ProfileError, load_profile
from autockpt.errors import OptionError
from autockpt.plan_file import Plan
from autockpt.profile_store import default_device, find_profile, with_tf32

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Question:
    memory_budget: int | float | str | None = None
    device: str | None = None
    optimizer: str | None = None
    lower: bool = False
    plan: Plan | None = None
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
