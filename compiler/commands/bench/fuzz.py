"""`autockpt bench fuzz`: random programs at several budgets; which promises hold, and small programs that fail."""

from __future__ import annotations

import time
from typing import Any

import click

from autockpt.commands.arguments import COUNT, FRACTION, SECONDS, Arguments, ParsedText, json_option
from autockpt.commands.click_commands import Command
from autockpt.commands.console import print_lines, progress_bar, stdout_console, write_json
from autockpt.commands.values import seed_range


@click.command(cls=Command)
@click.option(
    "--seeds",
    type=ParsedText("seeds", seed_range),
    default="0:100",
    show_default=True,
    help="A range such as 0:3000, or one seed.",
)
@click.option(
    "--lower", type=click.Choice(["eager", "inductor"]), default="eager", show_default=True, help="What runs the plans."
)
@click.option(
    "--budget",
    multiple=True,
    type=FRACTION,
    default=(0.0, 0.3, 0.7, 1.0),
    show_default=True,
    help="From the minimum peak, 0.0, to the fastest plan's, 1.0.",
)
@click.option("--jobs", type=COUNT, default=1, show_default=True, help="Processes, with one thread each.")
@click.option("--limit", type=SECONDS, default=600.0, show_default=True, help="Seconds for one program.")
@click.option("--shrink", type=COUNT, default=60, show_default=True, help="Tries to make a failing program smaller.")
@json_option
def command(**values: Any) -> int:
    """Check the promises on random modules: gradients, budget, no crash where plain torch.compile works, no fallback.

    With --lower eager, results are compared to the bit with eager mode or aot_eager; with inductor, with plain
    Inductor's within a tolerance that rounding explains. The same seed is the same program. Exit code 1 where any
    promise is broken.
    """
    return _run(Arguments(**values))


def _run(parsed: Arguments) -> int:
    from autockpt.fuzz import Campaign, check_seeds, failure_lines, smallest, summary

    console = stdout_console(120, quiet=parsed.json == "-")
    campaign, started = Campaign(parsed.lower), time.monotonic()
    with progress_bar("programs", len(parsed.seeds)) as advance:
        checked = check_seeds(parsed.seeds, parsed.lower, parsed.jobs, parsed.budget, parsed.limit)
        for seed, trials in checked:
            campaign.trials[seed] = trials
            campaign.seconds = time.monotonic() - started
            failed = len(campaign.failures())
            advance(f"{failed} failures" if failed else "no failure")
            print_lines(console, failure_lines(Campaign(parsed.lower, {seed: trials})))
    for seed, trials in sorted(campaign.trials.items()):
        first = next((trial for trial in trials if trial.failure), None)
        if first is not None and first.failure not in ("timeout", "fuzzer"):
            campaign.programs[seed] = smallest(seed, parsed.lower, first, parsed.shrink).source()
            print_lines(console, ["", campaign.programs[seed]])
    print_lines(console, summary(campaign))
    if parsed.json:
        write_json(parsed.json, campaign.as_json())
    return 1 if campaign.failures() else 0
