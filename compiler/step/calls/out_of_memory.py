"""`torch.OutOfMemoryError` inside a call of a compiled graph: what was live, what was planned, and what to try next."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import torch

from autockpt.machine import total_bytes
from autockpt.step.calls.call import GraphCall
from autockpt.step.decision import step_decision
from autockpt.step.outside import live_kinds
from autockpt.units import format_size, parse_size

if TYPE_CHECKING:
    from autockpt.step.calls.ledger import Ledger

_SIZE = r"(\d+(?:\.\d+)? (?:bytes|[KMGT]iB))"
_TRIED = re.compile(rf"Tried to allocate {_SIZE}")
_FREE = re.compile(rf"of which {_SIZE} is free")
_UNKNOWN_SHARE = 0.05
"""Of the budget, by which it is lowered where the error does not say what was missing."""


def missing_bytes(error: BaseException, budget_bytes: int) -> int:
    """What the allocation needed beyond what was free, as torch's message says it."""
    tried, free = (_bytes(pattern.search(str(error))) for pattern in (_TRIED, _FREE))
    if tried is None:
        return int(budget_bytes * _UNKNOWN_SHARE)
    return max(tried - (free or 0), 1)


def _bytes(found: re.Match[str] | None) -> int | None:
    return parse_size(found[1].replace("bytes", "B")) if found else None


def explain(error: BaseException, ledger: Ledger, call: GraphCall) -> None:
    """Add a note to the error; with `on_oom="replan"` lower the budget, too."""
    lowered = ledger.planner.tighten(call.graph, error) if call.graph.on_oom == "replan" else ""
    live_bytes = ledger.recorder.counter.now()
    kinds = ", ".join(f"{name} {format_size(size)}" for name, size in live_kinds(ledger.device, live_bytes).items())
    error.add_note(
        f"autockpt: out of memory in the {'backward' if call.in_backward else 'forward'} of {call.graph.name}, call "
        f"{call.number + 1} of its phase, {ledger.calls_in_flight} in flight. Live on {ledger.device}: "
        f"{format_size(live_bytes)}: {kinds}.\n{_plan(call)}\n{_next(ledger, call, live_bytes, lowered)}"
    )


def _plan(call: GraphCall) -> str:
    option, made = call.variant.option, call.variant.made
    held = f"{made.name} ({made.method}) holds {format_size(option.held_bytes)} between its passes"
    step = step_decision()
    if step is None:
        return f"The plan: {held}; the step is not planned as a whole yet."
    return (
        f"The plan: {held}; forecast for the step {format_size(step.peak_bytes)} of a budget of "
        f"{format_size(step.budget_bytes)}."
    )


def _next(ledger: Ledger, call: GraphCall, live_bytes: int, lowered: str) -> str:
    if lowered:
        return f"{lowered} Run the step again."
    budget_bytes = call.graph.budget_bytes
    if budget_bytes is None:
        return 'Next: set memory_budget in bytes, below what the device has, or on_oom="replan".'
    if live_bytes > budget_bytes:
        return (
            f"More is live than the budget allows, by {format_size(live_bytes - budget_bytes)}: something outside of "
            f'the compiled graphs grew after the step was planned. Next: free it, set reserve, or on_oom="replan".'
        )
    device_bytes = total_bytes(ledger.device)
    hint = " and PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" if ledger.device.type == "cuda" else ""
    return (
        f"The budget of {format_size(budget_bytes)} was kept, but the device ({format_size(device_bytes)}) has less "
        f"than that left for this process: fragmentation, other processes, libraries. Next: a lower memory_budget, "
        f'or on_oom="replan"{hint}.'
    )


def empty_cache(device: torch.device) -> None:
    """Return unused blocks of torch's allocator to the device."""
    if device.type != "cpu":
        torch.accelerator.empty_cache()
