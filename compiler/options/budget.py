"""`memory_budget` in all its spellings -> a Budget that needs no device any more."""

from __future__ import annotations

import math
import sys
from typing import Any

import torch

from autockpt.cost_models import DeviceProfile
from autockpt.machine import free_bytes, library_bytes, total_bytes
from autockpt.passes.problem import Budget
from autockpt.units import parse_size

ACCEPTED = (
    'a size such as "12GiB" or "800MB", a share of the device such as "80%", "auto", '
    "bytes as an int, or a fraction 0.0..1.0"
)
_MARGIN = 0.08
"""Of free memory: left alone by "auto" for allocator rounding, fragmentation and library workspaces."""
_GRAIN = 256
"""Into so many parts a GPU is divided to say how much of it is in use."""


def check_budget(value: Any) -> None:
    """Raise ValueError with what is wrong, without asking any device."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"is a {type(value).__name__}")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, float):
        if not 0.0 <= value <= 1.0:  # NaN is not
            raise ValueError("is a float, so a fraction, and not within 0.0..1.0; bytes are written as an int")
    elif value in (0, 1):
        raise ValueError(f"is ambiguous: write {float(value)} for the fraction, or a number of bytes")
    elif value < 0:
        raise ValueError("is negative")


def _check_text(value: str) -> None:
    if value == "auto":
        return
    if not value.strip().endswith("%"):
        parse_size(value)
    elif not 0.0 < _percent(value) <= 100.0:
        raise ValueError("is not a percentage above 0 and up to 100")


def _percent(value: str) -> float:
    try:
        return float(value.strip().removesuffix("%"))
    except ValueError:
        return math.nan


def resolve_budget(value: Any, reserve_bytes: int, device: torch.device) -> Budget:
    """The cap for one device now, less what is reserved; a fraction is between two peaks and knows no reserve."""
    if isinstance(value, float):
        return Budget(fraction=value)
    reserve_bytes += library_bytes(device)
    if value == "auto":
        return Budget(free_bytes=_rounded(int(free_bytes(device) * (1.0 - _MARGIN))) - reserve_bytes)
    if isinstance(value, str) and value.strip().endswith("%"):
        return _share(_percent(value) / 100.0, reserve_bytes, device)
    return Budget(total_bytes=(parse_size(value) if isinstance(value, str) else int(value)) - reserve_bytes)


def _share(share: float, reserve_bytes: int, device: torch.device) -> Budget:
    """Of a GPU, all that is in use counts, whoever uses it: this model's parameters and inputs are there already."""
    total = total_bytes(device)
    cap = int(total * share) - reserve_bytes
    if device.type != "cuda":
        return Budget(total_bytes=cap)
    # Coarsely and upwards: a little more or less in use, on another rank or in another run, is the same budget.
    grain = max(total // _GRAIN, 1)
    used = -(-(total - free_bytes(device)) // grain) * grain
    return Budget(free_bytes=cap - used)


def offline_budget(value: Any, reserve_bytes: int, profile: DeviceProfile) -> Budget:
    """The cap for a device that need not be here; without a value, what it has, less the margin of "auto"."""
    if isinstance(value, float):
        return Budget(fraction=value)
    if value is None or value == "auto":
        return Budget(total_bytes=device_limit(value, profile) - reserve_bytes)
    if isinstance(value, str) and value.strip().endswith("%"):
        return Budget(total_bytes=int(_memory_bytes(profile) * _percent(value) / 100.0) - reserve_bytes)
    return Budget(total_bytes=(parse_size(value) if isinstance(value, str) else int(value)) - reserve_bytes)


def device_limit(value: Any, profile: DeviceProfile) -> int:
    """Bytes that a step may occupy on the device of an analysis, which need not be here.

    All that the profile says it has, where the budget is a size or a share, which says itself how much of that it
    means; else less the margin of "auto".
    """
    if isinstance(value, int | str) and value != "auto":
        # A profile without a size stands for any machine, so a size is believed.
        return profile.memory_bytes or sys.maxsize
    return int(_memory_bytes(profile) * (1.0 - _MARGIN))


def _memory_bytes(profile: DeviceProfile) -> int:
    return profile.memory_bytes or total_bytes(torch.device("cpu"))


def _rounded(nbytes: int) -> int:
    """Down to four significant bits, so that a little more or less free memory meets the same cached kernels."""
    step = 1 << max(nbytes.bit_length() - 4, 0)
    return nbytes // step * step
