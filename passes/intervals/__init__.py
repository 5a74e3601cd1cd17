"""The interval program: which forward values to save over their retention interval, and which to recompute.

Imports `graph`, `problem` and `forecast` of the passes; all linear programs of the project are posed and solved here.
"""

from autockpt.passes.intervals.highs import integer_bound, solve_duals, solve_integer, solve_linear
from autockpt.passes.intervals.hosted_bound import HostedBound
from autockpt.passes.intervals.hosted_search import HostedIntervals
from autockpt.passes.intervals.linear import Constraints, LinearProgram
from autockpt.passes.intervals.program import lp_bound, solve_intervals
from autockpt.passes.intervals.search import IntervalSearch
from autockpt.passes.intervals.values import Intervals

__all__ = [
    "Constraints",
    "HostedBound",
    "HostedIntervals",
    "IntervalSearch",
    "Intervals",
    "LinearProgram",
    "integer_bound",
    "lp_bound",
    "solve_duals",
    "solve_integer",
    "solve_intervals",
    "solve_linear",
]
