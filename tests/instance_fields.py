"""The fields of a small instance file."""

from __future__ import annotations

from typing import Any


def fields(**changes: Any) -> dict[str, Any]:
    """A forward of three operations, each read by the next and by a backward operation; operation 6 reads nothing."""
    edges = [[0, 1], [1, 2], [2, 3], [1, 4], [3, 4], [0, 5], [4, 5]]
    made = {"n": 7, "edges": edges, "mem_kb": [8, 8, 8, 1, 1, 1, 0], "cost": [4, 2, 1, 1, 1, 1, 0], "loss": 2}
    return {**made, **changes}
