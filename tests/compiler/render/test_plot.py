"""Plots have the page's colours in both themes, and are complete files or none."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from report_sample import sample_report

from autockpt.errors import AutockptError
from autockpt.render.frontier_plot import save_frontier_plot
from autockpt.render.plot import Series, check_plot, new_axes, palette, save_plot

REPORT = sample_report()
TARGETS = {"frontier": lambda path: save_frontier_plot(REPORT, path), "series": lambda path: save_series(path)}


def save_series(path: str) -> None:
    series = [Series("ours", [(1.0, 2.0), (2.0, 1.0)], line=True), Series("plain", [(3.0, 1.0)])]
    save_plot(path, series, title="model", x="peak, MiB", y="ratio")


@pytest.mark.parametrize("kind", TARGETS)
def test_every_colour_of_an_svg_is_defined_for_both_themes(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    TARGETS[kind](str(path))
    text = path.read_text()
    ElementTree.fromstring(text)
    style, drawing = text.split("</style>", 1)
    used = set(re.findall(r"var\(--([\w-]+)\)", drawing))
    light, dark = style.split("@media(prefers-color-scheme:dark)")
    assert {"panel", "ink", "muted", "grid"} <= used
    for name in used:
        assert f"--{name}:{palette('light')[name]};" in light
        assert f"--{name}:{palette('dark')[name]};" in dark
    # Nothing is drawn in a colour that stays the same in the dark.
    assert set(re.findall(r"#[0-9a-f]{6}", drawing)) == set()


def test_equal_plots_are_equal_files(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        save_frontier_plot(REPORT, str(tmp_path / name))
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_plans_baselines_and_the_budget_are_named(tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    save_frontier_plot(REPORT, str(path))
    words = "".join(ElementTree.fromstring(path.read_text()).itertext())
    for name in ("minimum peak", "chosen", "fastest", *(one["name"] for one in REPORT["baselines"])):
        assert name in words


def test_a_step_of_several_graphs_has_no_plot(tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    report = {**REPORT, "frontier": [], "graphs": REPORT["graphs"] * 2}
    with pytest.raises(AutockptError, match="2 graphs has no common frontier"):
        save_frontier_plot(report, str(path))
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "plot.png"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), new_axes(str(path), "", "", ""):
        raise KeyboardInterrupt
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("plot.png", "old")]


def test_a_format_that_cannot_be_written_is_refused_early() -> None:
    check_plot("plot.svg")
    with pytest.raises(AutockptError, match=r"plot\.doc: a plot is one of .*svg"):
        check_plot("plot.doc")
