"""Sizes and durations as text. KiB, MiB, GiB are powers of 1024; KB, MB, GB of 1000."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

Progress = Callable[[str], None]
"""Called with one line of text before each part of long work: a progress bar's description."""

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_UNITS["TB"] = 10**12
UNITS = ", ".join(unit for unit in _UNITS if unit != "B")
_SIZE = re.compile(r"\s*(?P<number>\d+(\.\d*)?|\.\d+)\s*(?P<unit>[A-Za-z]+)\s*")


def parse_size(text: str) -> int:
    """`"12GiB"` -> 12884901888. Raises ValueError; its message continues a sentence that begins with the text."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"is not a number followed by a unit ({UNITS})")
    unit = match["unit"]
    if unit not in _UNITS:
        near = [known for known in _UNITS if known.lower() == unit.lower()]
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"has the unknown unit {unit[:20]!r}; known are {UNITS}{hint}")
    size = float(match["number"]) * _UNITS[unit]
    if not math.isfinite(size):
        raise ValueError("is too large to be a size")
    return int(size)


def format_size(nbytes: float) -> str:
    """In binary units, with one or two decimals: `79.4 MiB`."""
    for unit in ("GiB", "MiB", "KiB"):
        if abs(nbytes) >= _UNITS[unit]:
            return f"{nbytes / _UNITS[unit]:.2f} {unit}" if unit == "GiB" else f"{nbytes / _UNITS[unit]:.1f} {unit}"
    return f"{int(nbytes)} B"


def format_seconds(seconds: float) -> str:
    """With three significant digits: `12.4 ms`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if abs(seconds) >= size:
            value = seconds / size
            return f"{value:.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f} {unit}"
    return f"{seconds * 1e6:.0f} µs"
