"""`autockpt verify`: real steps of models at several budgets; which promises hold, as a table and an exit code."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from autockpt.commands.arguments import (
    BUDGET,
    COUNT,
    SIZES,
    WAY,
    Arguments,
    json_option,
    markdown_option,
    settings_option,
    targets_argument,
)
from autockpt.commands.click_commands import Command

_BUDGETS = (0.0, 0.3, 0.6, 1.0)


@click.command(cls=Command)
@targets_argument()
@click.option(
    "--budget",
    multiple=True,
    type=BUDGET,
    metavar="BUDGET...",
    help="Budgets, as memory_budget (default: 0.0 0.3 0.6 1.0).",
)
@click.option("--steps", type=COUNT, help="Instead: so many budgets, evenly from 0.0 to 1.0.")
@settings_option
@click.option("--device", help="Move model and inputs there, such as cuda (default: where the factory puts them).")
@click.option("--jobs", type=COUNT, default=1, show_default=True, help="Models at a time, a process each.")
@click.option(
    "--recomputed",
    is_flag=True,
    help="Instead: compare every recomputed value with what the forward computed, to the bit, and name the first that "
    "differs.",
)
@click.option(
    "--step",
    is_flag=True,
    help="Instead: run a training loop of five steps. FACTORY takes the keyword arguments of torch.compile and "
    "returns a model and a function that runs one step, which leaves its gradients in the model "
    "(examples/steps/loops.py). Without --budget: 10 % above the minimum peak, and the middle between it and plain.",
)
@click.option(
    "--ranks",
    type=COUNT,
    default=1,
    help="With --step: so many processes of this machine, in one gloo process group, run the loop together; each is "
    "checked, and the losses of 20 steps are compared, too (examples/ranks/loops.py).",
)
@click.option(
    "--sizes",
    multiple=True,
    type=SIZES,
    metavar="NAME=SIZE,SIZE...",
    help="Instead: compile one model and call it at every combination of these arguments of the factory, such as "
    "batch=4,16,64 length=32,64, smallest first and then mixed. Needs a --budget in bytes.",
)
@click.option(
    "--dynamic",
    multiple=True,
    type=WAY,
    metavar="WAY...",
    help="How sizes become dynamic, with --sizes: automatic, true (dynamic=True), mark (mark_dynamic); default: all.",
)
@click.option(
    "--offload",
    is_flag=True,
    help="Instead: steps that offload, at four budgets from the minimum peak without offloading upwards, or at other "
    "shares of that range (--budget 0.1 0.9). On the CPU with an artificial link, late copies and poisoned memory. At "
    "the first budget also 20 steps without growth, an exception, two calls in flight and two backwards of one.",
)
@click.option("--details", is_flag=True, help="What is live at each peak, with source lines.")
@json_option
@markdown_option
def command(**values: Any) -> int:
    """Run one real step at each budget and check every promise.

    FACTORY is a function in SCRIPT.py that returns a model and its inputs; @FILE stands for targets, one a line.
    Compares each budget with the forecast, compiled and measured peak, and gradients with plain Inductor's.

    Exit code 1 where a measured peak is over its budget, a gradient differs by more than the tolerance, or a tenth of a
    budget is left unused without a reason; with --recomputed, where a recomputed value differs.
    """
    kind = _kind(click.get_current_context())
    return _run(kind, Arguments(**values))


_TAKES = {
    "": {"budget", "steps", "jobs", "device", "details", "markdown"},
    "recomputed": {"budget", "steps", "device"},
    "offload": {"budget", "steps", "jobs", "device", "markdown"},
    "step": {"budget", "jobs", "markdown", "ranks"},
    "sizes": {"budget", "dynamic", "device", "markdown"},
}
"""Options of each kind of check, beside those that all take. Others are refused, not ignored."""
_ALL_TAKE = {"targets", "set", "json"}


def _kind(context: click.Context) -> str:
    """The kind of check that was asked for; raises UsageError where an option is of another kind."""
    typed = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    kinds = [name for name in typed if name in _TAKES]
    if len(kinds) > 1:
        raise click.UsageError(f"--{kinds[0]} and --{kinds[1]} are two kinds of check; one at a time")
    kind = kinds[0] if kinds else ""
    for name in typed:
        if name in _TAKES[kind] | _ALL_TAKE | {kind}:
            continue
        if kind:
            raise click.UsageError(f"--{kind} does not take --{name}")
        raise click.UsageError(f"--{name} needs --{next(other for other in _TAKES if name in _TAKES[other])}")
    return kind


def _run(kind: str, parsed: Arguments) -> int:
    from autockpt.commands.verify.loops import verify_loops
    from autockpt.commands.verify.offloads import verify_offloads
    from autockpt.commands.verify.one_step import verify_one_step
    from autockpt.commands.verify.recomputed import compare_recomputed
    from autockpt.commands.verify.sizes import verify_at_sizes
    from autockpt.measure import check_device

    if parsed.device:
        check_device(parsed.device)
    if kind == "step":
        return verify_loops(parsed)
    if kind == "sizes":
        return verify_at_sizes(parsed)
    if kind == "offload":
        return verify_offloads(parsed, _evenly(parsed.steps) if parsed.steps else parsed.budget)
    budgets = _evenly(parsed.steps) if parsed.steps else parsed.budget or _BUDGETS
    return compare_recomputed(parsed, budgets) if kind == "recomputed" else verify_one_step(parsed, budgets)


def _evenly(count: int) -> list[float]:
    return [round(number / max(count - 1, 1), 3) for number in range(count)]
