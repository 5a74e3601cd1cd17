"""`autockpt analyze SCRIPT.py:FACTORY`: the analysis on the terminal and in files, and an exit code."""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING

from autockpt.commands.arguments import add_settings, budget
from autockpt.commands.console import progress_line, stdout_console
from autockpt.units import Progress

if TYPE_CHECKING:
    from autockpt.analysis import Analysis

FITS, DOES_NOT_FIT = 0, 3
_FILES = {"html": ".html", "json": ".json", "trace": "trace.json", "snapshot": ".pickle"}
_QUICK_SECONDS = 12.0
"""Without `--what-if`, its rows are made where the analysis itself took less: each takes about as long."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Plans a training step on tensors without memory, for a device that need not be present. "
        "Exit code 0: it fits; 3: it does not; 2: wrong use."
    )
    parser.add_argument("target", metavar="SCRIPT.py:FACTORY", help="a function that returns a model and its inputs")
    add_settings(parser)
    parser.add_argument("--device", help="a profile's name or path (`autockpt devices`); default: this machine")
    parser.add_argument("--budget", type=budget, help="as memory_budget; default: the device's memory, less 8 %%")
    parser.add_argument("--optimizer", metavar="NAME", help="count its state too: adamw, sgd, momentum, ...")
    parser.add_argument("--plan", metavar="FILE", help="forecast this plan instead of making one")
    parser.add_argument(
        "--lower", action="store_true", help="compile the step too, and count what the generated code allocates"
    )
    parser.add_argument("--max-batch", action="store_true", help="find the largest batch that fits")
    parser.add_argument(
        "--what-if",
        action=argparse.BooleanOptionalAction,
        help=f"batch and sequence doubled and halved (default: where an analysis takes under {_QUICK_SECONDS:g} s)",
    )
    parser.add_argument("--html", metavar="FILE", help="write a page that opens in any browser, without a network")
    parser.add_argument("--json", metavar="FILE", help="write the whole report as JSON; - prints that instead of text")
    parser.add_argument("--trace", metavar="FILE", help="write a trace with memory counters for Perfetto")
    parser.add_argument("--snapshot", metavar="FILE", help="write a snapshot for torch's memory_viz")
    parser.add_argument("--save-plan", metavar="FILE", help='write the plan, for options={"plan": FILE}')
    parser.set_defaults(run=_run)


def _run(parsed: argparse.Namespace) -> int:
    from autockpt.render import check_page, check_writable

    for path in (*(getattr(parsed, kind) for kind in _FILES), parsed.save_plan):
        if path and path != "-":
            check_writable(path)
    if parsed.html:
        check_page()
    with progress_line() as progress:
        analysis = _analyze(parsed, progress)
    _write(parsed, analysis)
    return FITS if analysis.fits else DOES_NOT_FIT


def _analyze(parsed: argparse.Namespace, progress: Progress) -> Analysis:
    from autockpt.analysis import (
        AnalysisRequest,
        LargestBatch,
        batch_argument,
        builder,
        check_settings,
        device_profile,
        run_request,
        what_if,
    )
    from autockpt.measure import load_factory
    from autockpt.plans import PlanFile

    # What may be mistyped is read before the script runs, which may take long.
    plan = PlanFile.load(parsed.plan) if parsed.plan else None
    profile = device_profile(parsed.device)
    settings = dict(parsed.set)
    factory = load_factory(parsed.target)
    check_settings(factory, settings, parsed.target)
    request = AnalysisRequest(
        target=parsed.target,
        build=builder(factory, parsed.target),
        profile=profile,
        settings=settings,
        memory_budget=parsed.budget,
        optimizer=parsed.optimizer,
        dry_run=parsed.lower,
        plan=plan,
        progress=progress,
    )
    batch = batch_argument(request, factory) if parsed.max_batch else ""
    started = time.perf_counter()
    analysis = run_request(request)
    quick = time.perf_counter() - started < _QUICK_SECONDS
    if parsed.what_if or (parsed.what_if is None and quick):
        analysis.report["what_if"] = list(what_if(request, factory))
    if batch:
        search = LargestBatch(request, batch, analysis.report["budget_bytes"])
        analysis.report["max_batch"] = search.search()
    return analysis


def _write(parsed: argparse.Namespace, analysis: Analysis) -> None:
    from autockpt.render import analysis_text, save_as

    for kind, ending in _FILES.items():
        path = getattr(parsed, kind)
        if path and path != "-":
            save_as(analysis.report, path, ending)
    if parsed.save_plan:
        analysis.plan.save(parsed.save_plan)
    if parsed.json == "-":
        print(json.dumps(analysis.report, indent=1, allow_nan=False))
        return
    console = stdout_console(120)
    console.print(analysis_text(analysis.report, console.width))
