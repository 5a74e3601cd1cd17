"""`memory_budget` in all its spellings -> a Budget that needs no device any more."""

from __future__ import annotations

import math
from typing import Any

import torch

from autockpt.memory import free_bytes, total_bytes
from autockpt.passes.decide import Budget
from autockpt.sizes import parse_size

ACCEPTED = (
    'a size such as "12GiB" or "800MB", a share of the device such as "80%", "auto", '
    "bytes as an int, or a fraction 0.0..1.0"
)
_MARGIN = 0.08
"""Of free memory: left alone by "auto" for allocator rounding, fragmentation and library workspaces."""


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
    if value == "auto":
        return Budget(free_bytes=_rounded(int(free_bytes(device) * (1.0 - _MARGIN))) - reserve_bytes)
    if isinstance(value, str) and value.strip().endswith("%"):
        return Budget(total_bytes=int(total_bytes(device) * _percent(value) / 100.0) - reserve_bytes)
    return Budget(total_bytes=(parse_size(value) if isinstance(value, str) else int(value)) - reserve_bytes)


def _rounded(nbytes: int) -> int:
    """Down to four significant bits, so that a little more or less free memory meets the same cached kernels."""
    step = 1 << max(nbytes.bit_length() - 4, 0)
    return nbytes // step * step
