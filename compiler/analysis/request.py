"""The parameters of one analysis: which step, which device, which budget, and how much to compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from autockpt.cost_models import DeviceProfile, ProfileError, load_profile, shown
from autockpt.errors import OptionError
from autockpt.inductor import FakeJob, FakeStep, Job, inductor_rules
from autockpt.machine import default_device, find_profile, with_tf32
from autockpt.options import check_budget, offline_budget
from autockpt.passes.problem import CHECKED_MARGIN, UNCHECKED_MARGIN, Setup
from autockpt.plans import PlanFile
from autockpt.units import Progress, parse_size
from autockpt.vouch import allowed_operators

_UNKNOWN_HOST = 2**62


@dataclass(frozen=True)
class AnalysisRequest:
    target: str
    """What the report calls the step: `SCRIPT.py:FACTORY`, or the class of the model."""
    build: Callable[[torch.device, Mapping[str, Any], FakeJob | None], FakeStep]
    """Makes the step for a device and the `settings`, of tensors without memory, as one process or a rank of a job."""
    profile: DeviceProfile
    """Of the device to plan for, which need not be present."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the factory, where a factory makes the step."""
    memory_budget: int | float | str | None = None
    """None: the memory of the device, less a margin."""
    optimizer: str | None = None
    """Name of the optimizer whose state counts; None counts none."""
    dry_run: bool = False
    """Whether to compile the step and count what the generated code allocates, besides the forecast."""
    plan: PlanFile | None = None
    """Forecast this plan in the place of planning."""
    accumulate: int = 1
    """Micro-batches of a step, whose gradients add up."""
    offload: bool | str = False
    """Whether tensors may wait on the host: as many as fit a size, or True for any number, the host not being known."""
    job: Job | None = None
    """Of which this is one rank; None: the step of one process."""
    alternatives: bool = True
    """Whether to compute the frontier, the baselines and the tables of tensors too, besides the chosen plan."""
    solve_seconds: float = 60.0
    progress: Progress = lambda _: None

    def __post_init__(self) -> None:
        if self.accumulate < 1:
            raise OptionError(f"accumulate={self.accumulate}: a step has at least one micro-batch")
        if self.job and self.dry_run:
            raise OptionError("lower: a rank of a job is a step of several calls, which is not run dry")
        if self.offload and self.job:
            raise OptionError("offload: a rank of a job is a step of several calls; analyze does not plan it there yet")
        if isinstance(self.offload, str):
            _check_size(self.offload)
        if self.memory_budget is not None:
            try:
                check_budget(self.memory_budget)
            except ValueError as error:
                raise OptionError(f"memory_budget={shown(self.memory_budget)} {error}") from None

    def setup(self, state_bytes: int) -> Setup:
        """The planner's settings; `state_bytes` of optimizer state are subtracted from the budget."""
        return Setup(
            budget=offline_budget(self.memory_budget, state_bytes, self.profile),
            device=self.profile,
            threads=torch.get_num_threads(),
            solve_seconds=self.solve_seconds,
            margin=CHECKED_MARGIN if self.dry_run else UNCHECKED_MARGIN,
            allowed=allowed_operators(),
            rules=inductor_rules(),
            host_bytes=self.host_bytes,
        )

    @property
    def host_bytes(self) -> int:
        """The most that may be on the host at a time."""
        if isinstance(self.offload, str):
            return parse_size(self.offload)
        return _UNKNOWN_HOST if self.offload else 0


def _check_size(offload: str) -> None:
    try:
        if parse_size(offload):
            return
    except ValueError:
        pass
    raise OptionError(f"offload={shown(offload)} is neither true, false nor the most host memory, such as '64GiB'")


def device_profile(device: str | None) -> DeviceProfile:
    """The shipped profile of that name or the one in that file; the profile of this machine where None."""
    if device is None:
        return find_profile(default_device())
    try:
        return with_tf32(load_profile(device))
    except ProfileError as error:
        raise OptionError(f"device: {error}") from None


def job_of(world_size: int | None, rank: int | None) -> Job | None:
    """None without a world size."""
    if world_size is None:
        if rank is not None:
            raise OptionError(f"rank={rank} is of no job: give world_size, too")
        return None
    return Job(world_size, rank or 0)
