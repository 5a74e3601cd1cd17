"""`autockpt bench budgets | frontier | overhead | plan`: what is measured, and against what."""

from __future__ import annotations

import argparse
from importlib import import_module

BENCHES = {
    "budgets": "measured peak and step time at budgets from the minimum peak to the fastest plan",
    "frontier": "measured peak and step time beside plain Inductor, torch's own budget and checkpointed blocks",
    "overhead": "the recomputation time that the cost model predicts beside what real steps take",
    "plan": "the planner alone: planning time, optimality gaps, published instances; runs no model",
}
"""`bench SCRIPT.py:FACTORY` is short for `bench budgets SCRIPT.py:FACTORY`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    benches = parser.add_subparsers(required=True, metavar="BENCH")
    for name, summary in BENCHES.items():
        bench = benches.add_parser(name, help=summary, fromfile_prefix_chars="@")
        import_module(f"autockpt.commands.bench_{name}").add_arguments(bench)
