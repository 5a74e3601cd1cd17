"""`autockpt analyze SCRIPT.py:FACTORY`: the analysis on the terminal and in files, and an exit code."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from autockpt.commands.arguments import BUDGET, OUTPUT, Arguments, settings_option, target_argument
from autockpt.commands.click_commands import Command
from autockpt.commands.console import progress_line, stdout_console
from autockpt.units import Progress

if TYPE_CHECKING:
    from autockpt.analysis import Analysis

FITS, DOES_NOT_FIT = 0, 3
_FILES = {"html": ".html", "json": ".json", "trace": "trace.json", "snapshot": ".pickle"}
_QUICK_SECONDS = 12.0
"""Without `--what-if`, its rows are made where the analysis itself took less: each takes about as long."""


@click.command(cls=Command)
@target_argument
@settings_option
@click.option("--device", help="A profile's name or path (`autockpt devices`); default: this machine.")
@click.option("--budget", type=BUDGET, help="As memory_budget; default: the device's memory, less 8 %.")
@click.option("--optimizer", metavar="NAME", help="Count its state too: adamw, sgd, momentum, ...")
@click.option("--accumulate", type=click.IntRange(1), default=1, metavar="N", help="Micro-batches of a step.")
@click.option("--plan", metavar="FILE", help="Forecast this plan instead of making one.")
@click.option("--lower", is_flag=True, help="Compile the step too, and count what the generated code allocates.")
@click.option("--max-batch", is_flag=True, help="Find the largest batch that fits.")
@click.option(
    "--what-if/--no-what-if",
    default=None,
    help=f"Batch and sequence doubled and halved (default: where an analysis takes under {_QUICK_SECONDS:g} s).",
)
@click.option("--html", type=OUTPUT, metavar="FILE", help="Write a page that opens in any browser, without a network.")
@click.option("--json", type=OUTPUT, metavar="FILE", help="Write the whole report as JSON; - prints that, not text.")
@click.option("--plot", type=OUTPUT, metavar="FILE", help="Write peak against step time as .svg, .png, ...")
@click.option("--trace", type=OUTPUT, metavar="FILE", help="Write a trace with memory counters for Perfetto.")
@click.option("--snapshot", type=OUTPUT, metavar="FILE", help="Write a snapshot for torch's memory_viz.")
@click.option("--save-plan", type=OUTPUT, metavar="FILE", help='Write the plan, for options={"plan": FILE}.')
def command(**values: Any) -> int:
    """Plan a training step on tensors without memory, for a device that need not be present.

    FACTORY is a function in SCRIPT.py that returns a model and its inputs.

    Exit code 0: it fits; 3: it does not; 2: wrong use.
    """
    return _run(Arguments(**values))


def _run(parsed: Arguments) -> int:
    from autockpt.render import check_page, check_plot

    if parsed.html:
        check_page()
    if parsed.plot:
        check_plot(parsed.plot)
    with progress_line() as progress:
        analysis = _analyze(parsed, progress)
    _write(parsed, analysis)
    return FITS if analysis.fits else DOES_NOT_FIT


def _analyze(parsed: Arguments, progress: Progress) -> Analysis:
    from autockpt.analysis import (
        AnalysisRequest,
        LargestBatch,
        batch_argument,
        builder,
        check_optimizer,
        device_profile,
        run_request,
        what_if,
    )
    from autockpt.measure import check_settings, load_factory
    from autockpt.plans import PlanFile

    # What may be mistyped is read before the script runs, which may take long.
    plan = PlanFile.load(parsed.plan) if parsed.plan else None
    profile = device_profile(parsed.device)
    if parsed.optimizer:
        check_optimizer(parsed.optimizer)
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
        accumulate=parsed.accumulate,
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
