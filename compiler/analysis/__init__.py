"""Will a training step fit, why, and what would it cost: planned for any device without running anything."""

from autockpt.analysis.entry import analyze, run_request
from autockpt.analysis.request import AnalysisRequest, device_profile, job_of
from autockpt.analysis.result import Analysis
from autockpt.analysis.variants import LargestBatch, batch_argument, builder, what_if

__all__ = [
    "Analysis",
    "AnalysisRequest",
    "LargestBatch",
    "analyze",
    "batch_argument",
    "builder",
    "device_profile",
    "job_of",
    "run_request",
    "what_if",
]
