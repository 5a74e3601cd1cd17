"""Seconds as people read them."""

from __future__ import annotations


def format_seconds(seconds: float) -> str:
    """Three digits or so: `12.4 ms`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if abs(seconds) >= size:
            value = seconds / size
            return f"{value:.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f} {unit}"
    return f"{seconds * 1e6:.0f} µs"
