"""`autockpt bench budgets | frontier | fuzz | ledger | overhead | plan | start | step`: a module for each."""

from __future__ import annotations

import click

from autockpt.commands.click_commands import LazyGroup

_BENCHES = {
    "budgets": "Measured peak and step time at budgets from the minimum peak to the fastest plan.",
    "frontier": "Measured peak and step time beside plain Inductor, torch's own budget and checkpointed blocks.",
    "fuzz": "Random modules at several budgets: gradients, peaks, crashes; failing ones are made small.",
    "ledger": "What the ledger of calls in flight takes of each call.",
    "overhead": "The recomputation time that the cost model predicts beside what real steps take.",
    "plan": "The planner alone: planning time, optimality gaps, ablation, published instances; runs no model.",
    "start": "Seconds to the end of the first step in a fresh process, cold and warm, beside plain Inductor.",
    "step": "Training loops side by side at one budget: minimum peaks, peaks, and step times in interleaved rounds.",
}


@click.group(cls=LazyGroup, package=__name__, summaries=_BENCHES, default="budgets")
def command() -> None:
    """Measure plans against plain Inductor and other baselines; planning time and optimality gaps.

    `bench SCRIPT.py:FACTORY` is `bench budgets SCRIPT.py:FACTORY`.
    """
