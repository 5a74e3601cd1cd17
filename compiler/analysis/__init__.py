"""TODO"""

from autockpt.analysis.analyze import analyze
from autockpt.analysis.request import Question, add_set, budget_argument, check_settings, parse_settings
from autockpt.analysis.result import Analysis
from autockpt.analysis.variants import MaxBatch, Scenario, what_if

__all__ = [
    "Analysis",
    "MaxBatch",
    "Question",
    "Scenario",
    "add_set",
    "analyze",
    "budget_argument",
    "check_settings",
    "parse_settings",
    "what_if",
]
