"""What `autockpt bench overhead` prints and writes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import torch
from rich.table import Table

from autockpt import __version__
from autockpt.bench_overhead import Overhead, Point

NEAR = 0.10
_WORST = 5
_HEADINGS = ("model", "step", "predicted", "plan", "ratio", "predicted", "error", "ranks agree")


def rows(overheads: Sequence[Overhead], budgets: Sequence[float]) -> list[list[str]]:
    """A line for each budget of each model; ratios are to the plan that recomputes nothing."""
    shown = []
    for overhead in overheads:
        if overhead.trouble:
            shown.append([overhead.name, overhead.trouble, *[""] * (len(_HEADINGS) - 2)])
            continue
        base = overhead.points[0]
        head = [overhead.name, _milliseconds(base.measured_seconds), _milliseconds(base.predicted_seconds)]
        for point in picked(overhead, budgets):
            shown.append([*head, *_cells(point), f"{overhead.rank_correlation:.2f}" if head[0] else ""])
            head = ["", "", ""]
    return shown


def picked(overhead: Overhead, budgets: Sequence[float]) -> list[Point]:
    """The plan nearest to each of these budgets, each once."""
    if len(overhead.points) < 2:
        return []
    found = {point.name: point for point in map(overhead.nearest, sorted(budgets, reverse=True))}
    return list(found.values())


def _cells(point: Point) -> list[str]:
    measured = f"{point.measured:.2f} ({point.low:.2f} to {point.high:.2f})"
    return [point.name, measured, f"{point.predicted:.2f}", f"{point.error:+.1%}"]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms"


def table(overheads: Sequence[Overhead], budgets: Sequence[float]) -> Table:
    """For a terminal."""
    shown = Table(*_HEADINGS, title="step time over that of the plan that recomputes nothing")
    for column in shown.columns[1:]:
        column.no_wrap, column.justify = True, "right"
    for row in rows(overheads, budgets):
        shown.add_row(*row)
    return shown


def summary(overheads: Sequence[Overhead], budgets: Sequence[float]) -> list[str]:
    """What a reader wants to know first, and where the worst come from."""
    ran = [overhead for overhead in overheads if not overhead.trouble]
    points = [(overhead, point) for overhead in ran for point in picked(overhead, budgets)]
    if not points:
        return ["nothing was measured"]
    errors = [abs(point.error) for _, point in points]
    ranks = [overhead.rank_correlation for overhead in ran]
    plans = [abs(point.error) for overhead in ran for point in overhead.points[1:]]
    lines = [
        f"profile: {', '.join(sorted({overhead.device for overhead in ran}))}",
        f"predicted within {NEAR:.0%} of measured: {sum(e <= NEAR for e in errors)} of {len(errors)} "
        f"(median {statistics.median(errors):.1%}, worst {max(errors):.1%}); of all plans timed "
        f"{sum(e <= NEAR for e in plans)} of {len(plans)}",
        f"rank correlation over {min(len(o.points) for o in ran)} to {max(len(o.points) for o in ran)} plans a model: "
        f"median {statistics.median(ranks):.2f}, lowest {min(ranks):.2f}",
    ]
    worst = sorted(points, key=lambda found: -abs(found[1].error))[:_WORST]
    return [*lines, "worst, and the seconds more than without recomputation, predicted / measured:"] + [
        f"  {overhead.name}, {point.name}: {point.error:+.1%}; {_families(point)}" for overhead, point in worst
    ]


def _families(point: Point) -> str:
    told = [
        f"{name} {predicted * 1e3:+.1f} / {measured * 1e3:+.1f} ms"
        for name, (predicted, measured) in point.families.items()
        if predicted or measured
    ]
    return ", ".join(told)


def markdown(overheads: Sequence[Overhead], budgets: Sequence[float], lines: Sequence[str]) -> str:
    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    names = " ".join(overhead.name for overhead in overheads)
    made = f"`autockpt bench overhead` on {names}; autockpt {__version__}, torch {torch.__version__.partition('+')[0]}."
    body = [line(_HEADINGS), line(["---"] * len(_HEADINGS)), *map(line, rows(overheads, budgets))]
    return (
        "\n".join(["# Predicted and measured step time", "", made, "", *body, "", *(f"- {text}" for text in lines)])
        + "\n"
    )
