"""`autockpt verify`: real steps of models at several budgets; which promises hold, as a table and an exit code."""

from __future__ import annotations

from typing import Any

import click

from autockpt.commands.arguments import (
    BUDGET,
    COUNT,
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
    return _run(Arguments(**values))


def _run(parsed: Arguments) -> int:
    from autockpt.commands.verify.loops import verify_loops
    from autockpt.commands.verify.one_step import verify_one_step
    from autockpt.commands.verify.recomputed import compare_recomputed
    from autockpt.measure import check_device

    if parsed.device:
        check_device(parsed.device)
    if parsed.step:
        return verify_loops(parsed)
    budgets = _evenly(parsed.steps) if parsed.steps else parsed.budget or _BUDGETS
    return compare_recomputed(parsed, budgets) if parsed.recomputed else verify_one_step(parsed, budgets)


def _evenly(count: int) -> list[float]:
    return [round(number / max(count - 1, 1), 3) for number in range(count)]
