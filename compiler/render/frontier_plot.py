"""Peak against step time of an analysis as an image: plans from the minimum peak to the fastest, and baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from autockpt.errors import AutockptError
from autockpt.render.plot import colour, new_axes
from autockpt.units import format_size

_MIB, _MS = 2**20, 1e-3
_AROUND = ((9, 0), (0, 9), (0, -9), (-9, 0), (9, 7), (9, -7), (-9, 7), (-9, -7))
"""Offsets of a label from its point in points, the preferred one first."""
_GAP_PIXELS = 2


def save_frontier_plot(report: Mapping[str, Any], path: str) -> None:
    """Raises AutockptError for a step of several graphs: their plans have no common frontier."""
    plans, baselines, budget = report["frontier"], report["baselines"], report["budget_bytes"] / _MIB
    if not plans:
        raise AutockptError(f"{path} is not written: a step of {len(report['graphs'])} graphs has no common frontier")
    title = f"{report['target']} on {report['device']['name']}"
    with new_axes(path, title, "peak, MiB", "step time, ms", size=(8, 4.2)) as axes:
        line, points = _points(plans), _points(baselines)
        others = _points(report.get("frontier_without_offload", ()))
        if others:
            axes.plot(*zip(*others, strict=True), "o--", color=colour("plain"), markersize=4)
        axes.plot(*zip(*line, strict=True), "o-", color=colour("accent"), markersize=5)
        axes.plot(*zip(*points, strict=True), "D", markersize=7, markerfacecolor="none", color=colour("muted"))
        chosen = [point for point, plan in zip(line, plans, strict=True) if plan["chosen"]]
        axes.plot(*zip(*chosen, strict=True), "*", markersize=15, color=colour("chosen"))
        _widen(axes, [*line, *points, *others])
        if axes.get_xlim()[0] < budget < axes.get_xlim()[1]:
            axes.axvline(budget, color=colour("over"), linestyle=(0, (5, 4)), linewidth=1.3)
            axes.axvspan(budget, axes.get_xlim()[1], color=colour("chosen"), alpha=0.06, linewidth=0)
            said = f"budget {format_size(report['budget_bytes'])}"
            axes.annotate(said, (budget, 1), (4, -3), **_text("over"), va="top", xycoords=("data", "axes fraction"))
        names = [(line[0], "minimum peak", "ink"), (line[-1], "fastest", "ink"), (chosen[0], "chosen", "ink")]
        names += [(point, one["name"], "muted") for point, one in zip(points, baselines, strict=True)]
        # In the middle of their lines.
        names += [(others[len(others) // 2], "without offloading", "ink")] if others else []
        _label(axes, names, [*_along(line), *(_along(others) if others else ()), *points], budget)


def _points(plans: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    return [(plan["peak_bytes"] / _MIB, plan["step_seconds"] / _MS) for plan in plans]


def _widen(axes: Any, points: Sequence[tuple[float, float]]) -> None:
    """Room for labels around the outermost points."""
    for limits, values in ((axes.set_xlim, [x for x, _ in points]), (axes.set_ylim, [y for _, y in points])):
        margin = 0.12 * (max(values) - min(values)) or 1.0
        limits(min(values) - margin, max(values) + margin)


def _text(name: str) -> dict[str, Any]:
    return {"textcoords": "offset points", "fontsize": 9, "color": colour(name)}


def _along(line: Sequence[tuple[float, float]], count: int = 12) -> list[tuple[float, float]]:
    """The points of a line and `count` between each two, which labels avoid as well."""
    shares = [number / count for number in range(count)]
    between = [(x + s * (u - x), y + s * (v - y)) for (x, y), (u, v) in pairwise(line) for s in shares]
    return [*between, line[-1]]


def _label(
    axes: Any, names: Sequence[tuple[tuple[float, float], str, str]], points: Sequence[Any], budget: float
) -> None:
    """Each label on the side of its point where it covers least of the points, the budget and the labels so far."""
    from matplotlib.transforms import Bbox

    axes.figure.draw_without_rendering()
    taken = [Bbox.from_extents(x - 3, y - 3, x + 3, y + 3) for x, y in axes.transData.transform(points)]
    inside = axes.get_window_extent()
    wall = axes.transData.transform((budget, 0))[0]
    taken.append(Bbox.from_extents(wall - 1, inside.y0, wall + 1, inside.y1))
    for point, name, tone in dict.fromkeys(names):
        best: tuple[int, Any, Any] | None = None
        for x, y in _AROUND:
            sides = {"ha": "left" if x > 0 else "right" if x < 0 else "center"}
            sides["va"] = "bottom" if y > 0 else "top" if y < 0 else "center"
            text = axes.annotate(name, point, (x, y), **_text(tone), **sides)
            box = text.get_window_extent().padded(_GAP_PIXELS)
            covered = sum(box.overlaps(other) for other in taken)
            covered += 3 * (not (inside.x0 <= box.x0 and box.x1 <= inside.x1 and box.y1 <= inside.y1))
            if best is None or covered < best[0]:
                if best is not None:
                    best[1].remove()
                best = covered, text, box
            else:
                text.remove()
        assert best is not None
        taken.append(best[2])
