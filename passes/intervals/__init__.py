"""TODO"""

from autockpt.passes.intervals.linear import Program, Rows, solve_linear, solve_mixed
from autockpt.passes.intervals.program import lp_bound, solve
from autockpt.passes.intervals.rows import StageRows, solve_duals, solve_whole, weak_bound
from autockpt.passes.intervals.search import IntervalSearch
from autockpt.passes.intervals.values import Intervals

__all__ = [
    "IntervalSearch",
    "Intervals",
    "Program",
    "Rows",
    "StageRows",
    "lp_bound",
    "solve",
    "solve_duals",
    "solve_linear",
    "solve_mixed",
    "solve_whole",
    "weak_bound",
]
