"""Training loops of several steps: `verify --step`, which checks the promises over them, and `bench step`."""

from autockpt.measure.loops.compare import ComparedLoop, compare_loops, compared_table
from autockpt.measure.loops.ranks import RankJob, verify_on_ranks
from autockpt.measure.loops.report import step_markdown, step_summary, step_table
from autockpt.measure.loops.verify_step import StepVerdict, verify_step

__all__ = [
    "ComparedLoop",
    "RankJob",
    "StepVerdict",
    "compare_loops",
    "compared_table",
    "step_markdown",
    "step_summary",
    "step_table",
    "verify_on_ranks",
    "verify_step",
]
