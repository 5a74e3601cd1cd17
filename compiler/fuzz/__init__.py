"""Random programs that check the promises: the same gradients, a peak within the budget, no crash, no fallback.

A program is a module of 10 to 60 operations, made from a seed; it prints as a script, and a failing one is shrunk.
"""

from autockpt.fuzz.check import BUDGETS, Trial, check
from autockpt.fuzz.generate import generate
from autockpt.fuzz.kinds import KINDS
from autockpt.fuzz.program import Program, Statement
from autockpt.fuzz.report import Campaign, failure_lines, summary
from autockpt.fuzz.shrink import shrink
from autockpt.fuzz.workers import check_seeds, smallest

__all__ = [
    "BUDGETS",
    "KINDS",
    "Campaign",
    "Program",
    "Statement",
    "Trial",
    "check",
    "check_seeds",
    "failure_lines",
    "generate",
    "shrink",
    "smallest",
    "summary",
]
