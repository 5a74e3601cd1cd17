"""TODO"""

from autockpt.bench.budgets import Row, bench
from autockpt.bench.frontier import BUDGETS, Frontier, bench_frontier
from autockpt.bench.frontier_report import (
    frontier_markdown,
    frontier_notes,
    frontier_series,
    frontier_summary,
    frontier_table,
)
from autockpt.bench.gaps import DEPTHS, bench_depth, bench_gaps, depth_table, exponent, gap_summary, gap_table
from autockpt.bench.instances import run_instance
from autockpt.bench.overhead import Overhead, bench_overhead, overhead_markdown, overhead_summary, overhead_table
from autockpt.bench.planned_baselines import baseline_table, bench_baselines
from autockpt.bench.scale import SIZES, bench_scale, scale_table

__all__ = [
    "BUDGETS",
    "DEPTHS",
    "SIZES",
    "Frontier",
    "Overhead",
    "Row",
    "baseline_table",
    "bench",
    "bench_baselines",
    "bench_depth",
    "bench_frontier",
    "bench_gaps",
    "bench_overhead",
    "bench_scale",
    "depth_table",
    "exponent",
    "frontier_markdown",
    "frontier_notes",
    "frontier_series",
    "frontier_summary",
    "frontier_table",
    "gap_summary",
    "gap_table",
    "overhead_markdown",
    "overhead_summary",
    "overhead_table",
    "run_instance",
    "scale_table",
]
