"""Scatter and line plots as image files, by matplotlib (`pip install 'autockpt[plot]'`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autockpt.errors import AutockptError


@dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[tuple[float, float]]
    line: bool = False
    """Whether consecutive points are joined."""


def check_plot(path: str) -> None:
    """Raises AutockptError where matplotlib is missing or does not write this format; before minutes of measuring."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise AutockptError(f"a plot ({path}) needs matplotlib: pip install 'autockpt[plot]'") from None
    kinds = sorted(Figure().canvas.get_supported_filetypes())
    if Path(path).suffix.removeprefix(".") not in kinds:
        raise AutockptError(f"{path}: a plot is one of {', '.join(kinds)}")


def save_plot(
    path: str, series: Sequence[Series], *, title: str, x: str, y: str, log: bool = False, diagonal: bool = False
) -> None:
    """`log` makes both axes logarithmic; `diagonal` draws the line on which x equals y."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.5), layout="constrained")
    axes = figure.add_subplot()
    for one in series:
        if one.points:
            axes.plot(*zip(*one.points, strict=True), "o-" if one.line else "o", markersize=5, label=one.name)
    if diagonal:
        axes.axline((1, 1), slope=1, color="grey", linewidth=1)
    if log:
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
