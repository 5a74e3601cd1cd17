"""TODO"""

from autockpt.analysis.entry import analyze
from autockpt.analysis.request import Question, check_settings
from autockpt.analysis.result import Analysis
from autockpt.analysis.variants import MaxBatch, Scenario, what_if

__all__ = [
    "Analysis",
    "MaxBatch",
    "Question",
    "Scenario",
    "analyze",
    "check_settings",
    "what_if",
]
