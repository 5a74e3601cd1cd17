"""One plan with what it costs, as it stands in a frontier."""

from __future__ import annotations

from dataclasses import dataclass

from autockpt.passes.problem import Plan

TORCH_PARTITION = "Inductor's own"
"""The method of a candidate that stands for a partition that is not ours."""


@dataclass(frozen=True)
class Candidate:
    plan: Plan
    saved_bytes: int
    """What it adds to the bytes that live at the turning point in every plan."""
    recompute_seconds: float
    seconds: float
    """Of recomputation, and of the traffic that keeping costs."""
    method: str = "cut"
    """Which planner it is from."""
