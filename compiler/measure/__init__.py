"""TODO"""

from autockpt.measure.gradients import References
from autockpt.measure.peak import measure_peak
from autockpt.measure.step import Training, load_factory, load_training
from autockpt.measure.timing import Ratio, interleaved_times, kernel_seconds, ratio
from autockpt.measure.verify import TOLERANCE, Verdict, verify_target
from autockpt.measure.verify_report import falls, verify_markdown, verify_summary, verify_table

__all__ = [
    "TOLERANCE",
    "Ratio",
    "References",
    "Training",
    "Verdict",
    "falls",
    "interleaved_times",
    "kernel_seconds",
    "load_factory",
    "load_training",
    "measure_peak",
    "ratio",
    "verify_markdown",
    "verify_summary",
    "verify_table",
    "verify_target",
]
