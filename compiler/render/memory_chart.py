"""Live bytes over the step as a chart of characters, with the peak marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Group
from rich.text import Text

from autockpt.render.step import StepLaunch, graph_name, peak_launch, step_launches
from autockpt.units import format_size

COLUMNS = 60
_HEIGHT = 6
_LABEL = 10
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_EDGE = len(" ┤")


def memory_chart(report: Mapping[str, Any], width: int | None = None) -> Group | None:
    """The chart and a sentence about the peak; None where nothing is launched. `width` is of the terminal."""
    step = step_launches(report)
    peak = peak_launch(step)
    if peak is None or not peak.live_bytes:
        return None
    columns = COLUMNS if width is None else max(2, min(COLUMNS, width - _LABEL - _EDGE))
    parts = _parts(step)
    passes = _heights(parts, columns)
    heights = [height for one in passes for height in one]
    lines = [
        _marker(heights.index(max(heights)), len(heights)),
        *(_row(level, heights, peak.live_bytes) for level in reversed(range(_HEIGHT))),
        *_axis(parts, [len(one) for one in passes]),
    ]
    chart = Text("\n".join(line.rstrip() for line in lines), no_wrap=True, overflow="crop")
    return Group(chart, Text(_sentence(peak, step.index(peak), len(step), report)))


def _parts(step: Sequence[StepLaunch]) -> list[list[StepLaunch]]:
    """All forwards and all backwards; one part where they alternate, as micro-batches do."""
    parts = [list(launches) for _, launches in groupby(step, key=lambda launch: str(launch.facts["pass"]))]
    return parts if len(parts) <= 2 else [list(step)]


def _heights(parts: Sequence[Sequence[StepLaunch]], columns: int) -> list[list[int]]:
    """For each part its columns, at most `columns` in all, each the largest total of the launches that share it."""
    launched = [[launch.live_bytes for launch in part] for part in parts]
    share = round(columns * len(launched[0]) / sum(map(len, launched)))
    first = min(max(1, share), len(launched[0]), columns - len(launched) + 1)
    widths = [first, min(columns - first, len(launched[-1]))]
    return [
        [max(totals[n * len(totals) // width : (n + 1) * len(totals) // width]) for n in range(width)]
        for totals, width in zip(launched, widths, strict=False)
    ]


def _marker(column: int, columns: int) -> str:
    margin = " " * (_LABEL + _EDGE)
    text = " " * column + "▼ peak" if column <= columns // 2 else " " * max(0, column - 5) + "peak ▼"
    return margin + text


def _row(level: int, heights: Sequence[int], top: int) -> str:
    named = {_HEIGHT - 1: top, _HEIGHT // 2 - 1: top / 2}
    label = f"{format_size(named[level]):>{_LABEL}} ┤" if level in named else " " * _LABEL + " │"
    eighths = (round(8 * _HEIGHT * height / top) - 8 * level for height in heights)
    return label + "".join(_EIGHTHS[min(max(count, 0), 8)] for count in eighths)


def _axis(parts: Sequence[Sequence[StepLaunch]], widths: Sequence[int]) -> list[str]:
    """The horizontal axis, with a tick where the backward starts, and the names of the passes below it."""
    line = f"{'0 B':>{_LABEL}} └" + "┬".join("─" * wide for wide in [widths[0], *(w - 1 for w in widths[1:])])
    names = [" and ".join(dict.fromkeys(launch.facts["pass"] for launch in part)) for part in parts]
    margin = " " * (_LABEL + _EDGE)
    return [line, margin + "".join(f"{name:<{wide - 1}} " for name, wide in zip(names, widths, strict=True))]


def _sentence(peak: StepLaunch, number: int, count: int, report: Mapping[str, Any]) -> str:
    facts = peak.facts
    module = f" of {facts['module']}" if facts["module"] else ""
    graph = f" of {graph_name(peak, report)}" if len(report["graphs"]) > 1 and peak.graph >= 0 else ""
    return (
        f"The peak, {format_size(peak.live_bytes)}, is at {facts['operation']}{module} in the {facts['pass']}{graph}, "
        f"launch {number + 1} of {count}."
    )
