"""Measurements of plans against baselines, bounds and published results; one function for each `autockpt bench`.

May import every sub-package but commands and analysis. Tables are built here; what a command prints and writes is
decided in `commands`.
"""

from autockpt.bench.baselines import baseline_table, bench_baselines
from autockpt.bench.budgets import bench_budgets, budget_table, over_budget
from autockpt.bench.frontier import FRONTIER_BUDGETS, MeasuredFrontier, bench_frontier
from autockpt.bench.frontier_report import (
    frontier_markdown,
    frontier_notes,
    frontier_series,
    frontier_summary,
    frontier_table,
)
from autockpt.bench.ledger import LedgerTime, bench_ledger, ledger_table
from autockpt.bench.overhead import Overhead, bench_overhead
from autockpt.bench.overhead_report import overhead_markdown, overhead_summary, overhead_table
from autockpt.bench.planner.ablate import ablation_table, bench_ablation
from autockpt.bench.planner.gaps import (
    DEPTHS,
    PLAN_BUDGETS,
    bench_depth,
    bench_gaps,
    depth_table,
    exponent,
    gap_summary,
    gap_table,
)
from autockpt.bench.planner.instance_file import load_instance
from autockpt.bench.planner.instances import bench_instance, instance_notes, instance_table, parse_budgets
from autockpt.bench.planner.scale import SIZES, bench_scale, scale_table
from autockpt.bench.start import Start, Starts, bench_start, start_table

__all__ = [
    "DEPTHS",
    "FRONTIER_BUDGETS",
    "PLAN_BUDGETS",
    "SIZES",
    "LedgerTime",
    "MeasuredFrontier",
    "Overhead",
    "Start",
    "Starts",
    "ablation_table",
    "baseline_table",
    "bench_ablation",
    "bench_baselines",
    "bench_budgets",
    "bench_depth",
    "bench_frontier",
    "bench_gaps",
    "bench_instance",
    "bench_ledger",
    "bench_overhead",
    "bench_scale",
    "bench_start",
    "budget_table",
    "depth_table",
    "exponent",
    "frontier_markdown",
    "frontier_notes",
    "frontier_series",
    "frontier_summary",
    "frontier_table",
    "gap_summary",
    "gap_table",
    "instance_notes",
    "instance_table",
    "ledger_table",
    "load_instance",
    "over_budget",
    "overhead_markdown",
    "overhead_summary",
    "overhead_table",
    "parse_budgets",
    "scale_table",
    "start_table",
]
