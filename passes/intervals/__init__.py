"""TODO"""

from autockpt.passes.intervals.highs import integer_bound, solve_duals, solve_integer, solve_linear
from autockpt.passes.intervals.linear import Constraints, LinearProgram
from autockpt.passes.intervals.program import lp_bound, solve
from autockpt.passes.intervals.search import IntervalSearch
from autockpt.passes.intervals.values import Intervals

__all__ = [
    "Constraints",
    "IntervalSearch",
    "Intervals",
    "LinearProgram",
    "integer_bound",
    "lp_bound",
    "solve",
    "solve_duals",
    "solve_integer",
    "solve_linear",
]
