"""One target of `autockpt analyze`: the analysis, on the terminal and in files."""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from autockpt.commands.arguments import Arguments
from autockpt.commands.console import progress_line, stdout_console
from autockpt.units import Progress

if TYPE_CHECKING:
    from autockpt.analysis import Analysis

_FILES = {"html": ".html", "json": ".json", "trace": "trace.json", "snapshot": ".pickle"}
QUICK_SECONDS = 12.0
"""Without `--what-if`, its rows are made where the analysis itself took less: each takes about as long."""


def analyze_one(parsed: Arguments, target: str) -> dict[str, Any]:
    """The report, after it was printed and written to the files that were asked for."""
    from autockpt.render import check_page, check_plot

    if parsed.html:
        check_page()
    if parsed.plot:
        check_plot(parsed.plot)
    if click.get_current_context().obj and not parsed.what_if and not parsed.max_batch:
        # The process ends with this one analysis: its garbage need not be found.
        gc.disable()
    with progress_line(target if parsed.log else "", log=parsed.log) as progress:
        analysis = _analyze(parsed, target, progress)
    analysis.report["resources"] = _resources()
    _write(parsed, analysis)
    return analysis.report


def _analyze(parsed: Arguments, target: str, progress: Progress) -> Analysis:
    from autockpt.analysis import (
        AnalysisRequest,
        LargestBatch,
        batch_argument,
        builder,
        device_profile,
        job_of,
        run_request,
        what_if,
    )
    from autockpt.measure import check_settings, load_factory
    from autockpt.optimizers import check_optimizer
    from autockpt.plans import PlanFile

    # What may be mistyped is read before the script runs, which may take long.
    plan = PlanFile.load(parsed.plan) if parsed.plan else None
    profile = device_profile(parsed.device)
    if parsed.optimizer:
        check_optimizer(parsed.optimizer)
    settings = dict(parsed.set)
    factory = load_factory(target)
    check_settings(factory, settings, target)
    request = AnalysisRequest(
        target=target,
        build=builder(factory, target),
        profile=profile,
        settings=settings,
        memory_budget=parsed.budget,
        optimizer=parsed.optimizer,
        dry_run=parsed.lower,
        plan=plan,
        accumulate=parsed.accumulate,
        offload=parsed.offload,
        job=job_of(parsed.world_size, parsed.rank),
        progress=progress,
    )
    batch = batch_argument(request, factory) if parsed.max_batch else ""
    started = time.perf_counter()
    analysis = run_request(request)
    quick = time.perf_counter() - started < QUICK_SECONDS
    if parsed.what_if or (parsed.what_if is None and quick):
        analysis.report["what_if"] = list(what_if(request, factory))
    if batch:
        search = LargestBatch(request, batch, analysis.report["budget_bytes"])
        analysis.report["max_batch"] = search.search()
    return analysis


def _resources() -> dict[str, Any]:
    """What this process has used from its start."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    # In kilobytes, but for macOS.
    unit = 1 if sys.platform == "darwin" else 2**10
    return {"cpu_seconds": round(used.ru_utime + used.ru_stime, 2), "memory_bytes": used.ru_maxrss * unit}


def _write(parsed: Arguments, analysis: Analysis) -> None:
    from autockpt.render import analysis_text, save_as, save_frontier_plot

    for kind, ending in _FILES.items():
        path = getattr(parsed, kind)
        if path and path != "-":
            save_as(analysis.report, path, ending)
    if parsed.plot:
        save_frontier_plot(analysis.report, parsed.plot)
    if parsed.save_plan:
        analysis.plan.save(parsed.save_plan)
    if parsed.json == "-":
        print(json.dumps(analysis.report, indent=1, allow_nan=False))
        return
    console = stdout_console(120)
    console.print(analysis_text(analysis.report, console.width))
