"""An analysis for people: text, an HTML page, a Chrome trace, a memory snapshot, plots.

Every renderer takes the report, a dictionary of JSON types that `analysis` builds. Imports the top-level modules of
`autockpt` only, and loads its own on first use, because rich, plotly and matplotlib are slow to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autockpt.render.formats import check_writable, save, save_as
    from autockpt.render.frontier_plot import save_frontier_plot
    from autockpt.render.page import check_page
    from autockpt.render.plot import Series, check_plot, save_plot
    from autockpt.render.step import peak_launch, step_launches
    from autockpt.render.text import analysis_text, render

__all__ = [
    "Series",
    "analysis_text",
    "check_page",
    "check_plot",
    "check_writable",
    "peak_launch",
    "render",
    "save",
    "save_as",
    "save_frontier_plot",
    "save_plot",
    "step_launches",
]

_MODULES = {
    "Series": "plot",
    "analysis_text": "text",
    "check_page": "page",
    "check_plot": "plot",
    "check_writable": "formats",
    "peak_launch": "step",
    "render": "text",
    "save": "formats",
    "save_as": "formats",
    "save_frontier_plot": "frontier_plot",
    "save_plot": "plot",
    "step_launches": "step",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
