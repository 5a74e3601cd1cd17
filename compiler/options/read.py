"""Options are read once, here, and travel as a value. A wrong one raises before anything is traced."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from autockpt.cost_models import shown
from autockpt.errors import OptionError
from autockpt.inductor import inductor_modes, inductor_options
from autockpt.options.checks import CHECKS
from autockpt.options.environment import LONGEST_NAME, from_environment
from autockpt.plans import PlanFile
from autockpt.units import parse_size


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
    offload: bool | str = False
    """Whether tensors may wait on the host: up to 80 % of what is free there, or up to this size."""
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
    sync: str | bool = "auto"
    """Whether ranks agree on budgets and plans of the graphs that they share."""
    mode: str | None = None
    inductor: Mapping[str, Any] = field(default_factory=dict)
    """Passed on as they are."""

    def __post_init__(self) -> None:
        for name, (check, accepted) in CHECKS.items():
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
        given = {**from_environment(KNOWN), **(raw or {})}
        if mode is not None:
            given["mode"] = mode
        ours = {name: given.pop(name) for name in KNOWN if name in given}
        _check_inductor(given)
        return cls(**ours, inductor=given)

    @property
    def reserve_bytes(self) -> int:
        return parse_size(self.reserve) if isinstance(self.reserve, str) else self.reserve

    @property
    def offload_limit_bytes(self) -> int:
        """The size that `offload` states; 0 without one."""
        return parse_size(self.offload) if isinstance(self.offload, str) else 0

    def inductor_patches(self) -> dict[str, Any]:
        mode = inductor_modes()[self.mode] if self.mode else {}
        return {**mode, **{name.replace("-", "_"): value for name, value in self.inductor.items()}}


KNOWN = tuple(option.name for option in fields(Options) if option.name != "inductor")
_OURS = ("custom_partitioner_fn", "custom-partitioner-fn")
"""Options of Inductor that autockpt sets."""


def _check_inductor(given: Mapping[str, Any]) -> None:
    inductor = {name.replace("-", "_") for name in inductor_options()}
    for name in given:
        if name in _OURS:
            raise OptionError(
                f"option {name}: autockpt partitions the graph itself; leave it out, or use Inductor alone"
            )
        if not isinstance(name, str) or name.replace("-", "_") not in inductor:
            near = difflib.get_close_matches(str(name)[:LONGEST_NAME], [*KNOWN, *sorted(inductor)], n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            known = ", ".join(KNOWN)
            raise OptionError(f"unknown option {shown(name)}{hint}; accepted are {known} and every option of Inductor")
