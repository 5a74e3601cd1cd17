"""The tables of `autockpt verify --sizes`, for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from rich.table import Table

from autockpt import __version__
from autockpt.measure.sizes.calls import in_words
from autockpt.measure.sizes.verdict import SizeVerdict, WayVerdict
from autockpt.units import format_size

_CALLS = ("way", "order", "size", "budget", "forecast", "measured", "used", "plain", "gradients", "to eager", "variant")
_WAYS = ("way", "order", "budget held", "gradients", "Dynamo graphs", "most variants", "compiles", "plain", "choosing")


def sizes_tables(verdicts: Sequence[WayVerdict]) -> list[Table]:
    """For a terminal: every call, then every way; broken promises in red."""
    calls, ways = Table(*_CALLS), Table(*_WAYS)
    for column in [*calls.columns[3:], *ways.columns[2:]]:
        column.no_wrap, column.justify = True, "right"
    for one in verdicts:
        for call in one.calls:
            calls.add_row(*_call_cells(one, call), style="red" if call.broken else None)
        calls.add_section()
        ways.add_row(*_way_cells(one), style="red" if one.broken else None)
    return [calls, ways]


def sizes_lines(verdicts: Sequence[WayVerdict]) -> list[str]:
    """Which sizes each variant holds for, then a line for every note and broken promise."""
    lines = []
    for one in verdicts:
        name = f"{one.way}, {one.order}"
        ranges = "; ".join(f"{number} for {text}" for number, text in enumerate(one.ranges, 1))
        lines.append(f"{name}: variant {ranges}")
        lines += [f"{name}: {in_words(call.sizes)}: {call.note}" for call in one.calls if call.note]
        lines += [
            f"{name}: {in_words(call.sizes)}: BROKEN: {', '.join(call.broken)}" for call in one.calls if call.broken
        ]
    held = sum("budget" not in call.broken and not call.note for one in verdicts for call in one.calls)
    total = sum(len(one.calls) for one in verdicts)
    return [f"measured within the budget: {held} of {total}", *lines]


def sizes_markdown(command: str, verdicts: Sequence[WayVerdict]) -> str:
    """A page with versions and command, both tables and the lines."""
    versions = f"autockpt {__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    calls = _markdown(_CALLS, [_call_cells(one, call) for one in verdicts for call in one.calls])
    ways = _markdown(_WAYS, [_way_cells(one) for one in verdicts])
    lines = "\n".join(f"- {line}" for line in sizes_lines(verdicts))
    return f"{versions}: `autockpt verify {command}`\n\n{ways}\n\n{calls}\n\n{lines}\n"


def _call_cells(one: WayVerdict, call: SizeVerdict) -> list[str]:
    start = [one.way, one.order, in_words(call.sizes), format_size(call.budget_bytes)]
    if not call.measured_bytes:
        return [*start, *["-"] * (len(_CALLS) - len(start))]
    share = f"{call.measured_bytes / call.budget_bytes:.0%}" if call.budget_bytes else "-"
    return [
        *start,
        format_size(call.forecast_bytes) if call.forecast_bytes is not None else "unknown",
        format_size(call.measured_bytes),
        share + (" OVER" if "budget" in call.broken else ""),
        format_size(call.plain_bytes),
        call.gradients + (" DIFFERENT" if "gradients" in call.broken else ""),
        f"{call.eager:.0e}" if call.eager else "equal",
        ("-" if call.variant is None else str(call.variant)) + (" (compiled)" if call.compiled else ""),
    ]


def _way_cells(one: WayVerdict) -> list[str]:
    ran = [call for call in one.calls if call.measured_bytes]
    equal = sum(call.gradients == "equal" for call in ran)
    near = sum("gradients" not in call.broken for call in ran)
    return [
        one.way,
        one.order,
        f"{sum(not {'budget', 'infeasible', 'uncompiled'} & {*call.broken} for call in one.calls)} of {len(one.calls)}",
        f"{near} of {len(one.calls)}, {equal} to the bit",
        str(one.graphs),
        str(one.variants),
        str(one.compiles),
        str(one.plain_compiles),
        f"{one.choose_seconds * 1e6:.1f} us (plain {one.plain_choose_seconds * 1e6:.1f})",
    ]


def _markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [headings, ["---"] * len(headings), *rows])
