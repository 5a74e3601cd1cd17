"""The command `autockpt analyze`: its options, what goes together, and its exit code."""

from __future__ import annotations

from typing import Any

import click

from autockpt.commands.analyze.one import QUICK_SECONDS, analyze_one
from autockpt.commands.analyze.several import analyze_several
from autockpt.commands.analyze.stages import analyze_stages
from autockpt.commands.arguments import BUDGET, OFFLOAD, OUTPUT, Arguments, settings_option, targets_argument
from autockpt.commands.click_commands import Command

FITS, DID_NOT_RUN, DOES_NOT_FIT = 0, 1, 3
_OF_ONE_TARGET = ("plan", "html", "plot", "trace", "snapshot", "save_plan")


@click.command(cls=Command)
@targets_argument()
@settings_option
@click.option("--device", help="A profile's name or path (`autockpt devices`); default: this machine.")
@click.option("--budget", type=BUDGET, help="As memory_budget; default: the device's memory, less 8 %.")
@click.option("--optimizer", metavar="NAME", help="Count its state too: adamw, sgd, momentum, ...")
@click.option("--accumulate", type=click.IntRange(1), default=1, metavar="N", help="Micro-batches of a step.")
@click.option(
    "--offload",
    type=OFFLOAD,
    default=False,
    metavar="true|SIZE",
    help="Plan with tensors that wait on the host, of any number of bytes or up to a size.",
)
@click.option(
    "--world-size", type=click.IntRange(1), metavar="N", help="Analyze one rank of a job of N that is not here."
)
@click.option("--rank", type=click.IntRange(0), metavar="N", help="Which one; default: 0.")
@click.option("--all-stages", is_flag=True, help="A table of the stages of the pipeline that the rank is in.")
@click.option("--plan", metavar="FILE", help="Forecast this plan instead of making one.")
@click.option("--lower", is_flag=True, help="Compile the step too, and count what the generated code allocates.")
@click.option("--max-batch", is_flag=True, help="Find the largest batch that fits.")
@click.option(
    "--what-if/--no-what-if",
    default=None,
    help=f"Batch and sequence doubled and halved (default: where an analysis takes under {QUICK_SECONDS:g} s).",
)
@click.option("--html", type=OUTPUT, metavar="FILE", help="Write a page that opens in any browser, without a network.")
@click.option("--json", type=OUTPUT, metavar="FILE", help="Write the whole report as JSON; - prints that, not text.")
@click.option("--markdown", type=OUTPUT, metavar="FILE", help="Write the table of all targets, a row each.")
@click.option("--plot", type=OUTPUT, metavar="FILE", help="Write peak against step time as .svg, .png, ...")
@click.option("--trace", type=OUTPUT, metavar="FILE", help="Write a trace with memory counters for Perfetto.")
@click.option("--snapshot", type=OUTPUT, metavar="FILE", help="Write a snapshot for torch's memory_viz.")
@click.option("--save-plan", type=OUTPUT, metavar="FILE", help='Write the plan, for options={"plan": FILE}.')
@click.option("--log", is_flag=True, help="Without a terminal: a line on stderr for everything that is begun.")
def command(**values: Any) -> int:
    """Plan a training step on tensors without memory, for a device that need not be present.

    FACTORY is a function in SCRIPT.py that returns a model and its inputs; @FILE stands for targets, one a line. Of
    several targets a table is printed, and each is analyzed in a process of its own.

    Exit code 0: all fit; 3: one does not; 2: wrong use; 1: one of several targets could not be analyzed.
    """
    return _run(Arguments(**values))


def _run(parsed: Arguments) -> int:
    if parsed.all_stages:
        reports = analyze_stages(parsed)
    elif len(parsed.targets) == 1 and not parsed.markdown:
        reports = [analyze_one(parsed, parsed.targets[0])]
    else:
        _refuse([f"--{name.replace('_', '-')}" for name in _OF_ONE_TARGET if getattr(parsed, name)], parsed)
        reports = analyze_several(parsed)
    if any("error" in report for report in reports):
        return DID_NOT_RUN
    return FITS if all(report["fits"] for report in reports) else DOES_NOT_FIT


def _refuse(options: list[str], parsed: Arguments) -> None:
    if options:
        what = "--markdown" if len(parsed.targets) == 1 else f"{len(parsed.targets)} targets"
        raise click.UsageError(f"{options[0]} is for one target; {what} make a table", click.get_current_context())
