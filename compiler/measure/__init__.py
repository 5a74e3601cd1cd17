"""Measurements of real training steps: peak, seconds, gradients, and `verify`, which checks the promises with them."""

from autockpt.measure.blocks import checkpoint_block, find_blocks
from autockpt.measure.factory import check_settings, load_factory, parameters_of
from autockpt.measure.gradients import ReferenceGradients
from autockpt.measure.loops import (
    ComparedLoop,
    RankJob,
    StepVerdict,
    compare_loops,
    compared_table,
    step_markdown,
    step_summary,
    step_table,
    verify_on_ranks,
    verify_step,
)
from autockpt.measure.offload import (
    FRACTIONS,
    DeviceCopier,
    OffloadVerdict,
    offload_lines,
    offload_markdown,
    offload_table,
    time_host_link,
    verify_offload,
)
from autockpt.measure.peak import measure_peak, measure_peaks
from autockpt.measure.recomputed import RecomputedVerdict, verify_recomputed
from autockpt.measure.sizes import (
    SizedModel,
    SizeVerdict,
    WayVerdict,
    all_sizes,
    check_sizes,
    sizes_lines,
    sizes_markdown,
    sizes_tables,
    verify_sizes,
)
from autockpt.measure.step import Training, check_device, load_training
from autockpt.measure.time_limit import within_seconds
from autockpt.measure.timing import Ratio, interleaved_times, ratio, seconds_by_family
from autockpt.measure.verify import TOLERANCE, Verdict, verify_target
from autockpt.measure.verify_report import falling_peaks, verify_markdown, verify_summary, verify_table

__all__ = [
    "FRACTIONS",
    "TOLERANCE",
    "ComparedLoop",
    "DeviceCopier",
    "OffloadVerdict",
    "RankJob",
    "Ratio",
    "RecomputedVerdict",
    "ReferenceGradients",
    "SizeVerdict",
    "SizedModel",
    "StepVerdict",
    "Training",
    "Verdict",
    "WayVerdict",
    "all_sizes",
    "check_device",
    "check_settings",
    "check_sizes",
    "checkpoint_block",
    "compare_loops",
    "compared_table",
    "falling_peaks",
    "find_blocks",
    "interleaved_times",
    "load_factory",
    "load_training",
    "measure_peak",
    "measure_peaks",
    "offload_lines",
    "offload_markdown",
    "offload_table",
    "parameters_of",
    "ratio",
    "seconds_by_family",
    "sizes_lines",
    "sizes_markdown",
    "sizes_tables",
    "step_markdown",
    "step_summary",
    "step_table",
    "time_host_link",
    "verify_markdown",
    "verify_offload",
    "verify_on_ranks",
    "verify_recomputed",
    "verify_sizes",
    "verify_step",
    "verify_summary",
    "verify_table",
    "verify_target",
    "within_seconds",
]
