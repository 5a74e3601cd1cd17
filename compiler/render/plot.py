"""Plots as image files, by matplotlib (`pip install 'autockpt[plot]'`), in the colours of the HTML page.

An SVG follows the reader's light or dark theme as the page does: its colours are the page's CSS variables, which
`assets/page.css` defines for both. Other formats are light.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

from autockpt.errors import AutockptError
from autockpt.files import write_file

_SERIES = ("accent", "chosen", "kind-gradients", "kind-recomputed", "kind-offloaded", "plain")
"""Colours of a plot's series, in turn; all distinct, also for colour-blind readers."""


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
    with new_axes(path, title, x, y) as axes:
        for number, one in enumerate(series):
            if one.points:
                tint = colour(_SERIES[number % len(_SERIES)])
                where = zip(*one.points, strict=True)
                axes.plot(*where, "o-" if one.line else "o", markersize=5, color=tint, label=one.name)
        if diagonal:
            axes.axline((1, 1), slope=1, color=colour("muted"), linewidth=1)
        if log:
            axes.set_xscale("log")
            axes.set_yscale("log")
        axes.legend(frameon=False, labelcolor=colour("ink"))


@contextmanager
def new_axes(path: str, title: str, x: str, y: str, size: tuple[float, float] = (8, 5)) -> Iterator[Any]:
    """Axes to draw on in the shared look. The file is written, completely, when the block ends without an exception."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(rc=_style()):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(title, loc="left", color=colour("ink"))
        axes.set(xlabel=x, ylabel=y)
        yield axes
        content = BytesIO()
        kind = Path(path).suffix.removeprefix(".")
        # Without the date equal plots are equal files.
        figure.savefig(content, format=kind, dpi=120, metadata={"Date": None} if kind == "svg" else None)
    write_file(Path(path), _themed(content.getvalue().decode()).encode() if kind == "svg" else content.getvalue())


def colour(name: str) -> str:
    """A colour of the page's light theme by the name of its CSS variable."""
    return palette("light")[name]


@cache
def palette(theme: str) -> Mapping[str, str]:
    """The colours of a theme, `light` or `dark`, by the names of their CSS variables."""
    text = files("autockpt.render").joinpath("assets", "page.css").read_text(encoding="utf-8")
    selector = r':root\[data-theme="dark"\]' if theme == "dark" else ":root"
    block = re.search(selector + r" \{(.*?)\n\}", text, re.DOTALL)
    assert block is not None
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block[1]))


def _style() -> Any:
    line, muted = colour("line"), colour("muted")
    return {
        "font.family": "sans-serif",
        "font.size": 10,
        "svg.fonttype": "none",
        "text.parse_math": False,
        "svg.hashsalt": "autockpt",
        "figure.facecolor": colour("panel"),
        "axes.facecolor": "none",
        "axes.edgecolor": line,
        "axes.labelcolor": muted,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.color": colour("grid"),
        "text.color": colour("ink"),
        "xtick.color": line,
        "ytick.color": line,
        "xtick.labelcolor": muted,
        "ytick.labelcolor": muted,
    }


def _themed(svg: str) -> str:
    """The SVG with CSS variables in the place of the light theme's colours, defined for both themes."""
    used = {name: light for name, light in palette("light").items() if light in svg}
    for name, light in used.items():
        svg = svg.replace(light, f"var(--{name})")
    themes = {theme: "".join(f"--{name}:{palette(theme)[name]};" for name in used) for theme in ("light", "dark")}
    fonts = "text{font-family:system-ui,sans-serif!important}"
    style = f"svg{{{themes['light']}}}@media(prefers-color-scheme:dark){{svg{{{themes['dark']}}}}}{fonts}"
    return svg.replace("<defs>", f"<style>{style}</style>\n <defs>", 1)
