"""TODO"""

from autockpt.render.files import check_writable, save, save_as
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
    "save_plot",
    "step_launches",
]
