"""How much work a planner may spend on a graph, fixed by the number of its values.

Work is counted in cuts, solves and replays, never in seconds, so that the same graph gets the same plan on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

LARGE_GRAPH = 2800
"""Values from which one replay takes tenths of a second, and every search gets fewer of them."""
_REPLAYED_VALUES = 60_000
"""Values that one eviction descent replays, all its steps together."""


@dataclass(frozen=True, slots=True)
class Effort:
    cut_prices: float = inf
    """Prices of a byte at which the graph is cut."""
    grid_budgets: int = 20
    """Budgets at which the interval program is solved, from the fastest plan's peak down."""
    interval_rounds: int = 5
    """Solutions of the interval program for one budget, each corrected by the replay of the last."""
    eviction_steps: int = 100
    """Steps of one eviction descent; 0 leaves the descents out."""
    two_level_plans: bool = True
    """Whether two-level plans are tried in all their shapes, or only near the square root of the depth."""
    frontier_points: int = 9
    """Plans between the minimum peak and the fastest that a report shows."""

    @classmethod
    def for_graph(cls, values: int) -> Effort:
        if values < LARGE_GRAPH:
            return cls(eviction_steps=_REPLAYED_VALUES // max(values, 1))
        return cls(
            cut_prices=7,
            grid_budgets=5,
            interval_rounds=3,
            eviction_steps=0,
            two_level_plans=False,
            frontier_points=5,
        )
