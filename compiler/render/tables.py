"""The tables of an analysis for a terminal: where the width does not suffice, words are cut and numbers are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from autockpt.render.step import OPTIMIZER, optimizer_bytes
from autockpt.render.tensor_groups import TensorGroup
from autockpt.units import format_seconds, format_size

POINTS = 12
"""Rows of the frontier, at most."""
MODULES = 8
_FRONTIER = ("", "peak", "step", "over fastest", "recomputed", "*planned by")
_BAR = 10
_EIGHTHS = " ▏▎▍▌▋▊▉"


def frontier_table(report: Mapping[str, Any]) -> Table:
    """Plans from the minimum peak to the fastest, then the baselines."""
    points, shown = report["frontier"], _thinned(report["frontier"])
    some = f" ({len(shown)} of {len(points)} plans)" if len(shown) < len(points) else ""
    table = _table(f"Plans from minimum peak to fastest, and baselines{some}", *_FRONTIER)
    for point in shown:
        cells = ["→" if point["chosen"] else "", *_cost(point, report), point["method"]]
        _add(table, cells, "bold" if point["chosen"] else "")
    table.add_section()
    for baseline in report["baselines"]:
        _add(table, ["", *_cost(baseline, report), baseline["name"]], "dim")
    return table


def _thinned(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Evenly spaced rows, with the ends and the chosen plan."""
    if len(points) <= POINTS:
        return list(points)
    shown = {round(n * (len(points) - 1) / (POINTS - 2)) for n in range(POINTS - 1)}
    return [point for n, point in enumerate(points) if n in shown or point["chosen"]]


def _cost(point: Mapping[str, Any], report: Mapping[str, Any]) -> list[str]:
    fastest = report["fastest_seconds"]
    over = f"{point['step_seconds'] / fastest - 1:+.1%}" if fastest else ""
    recompute = format_seconds(point["recompute_seconds"]) if point["recompute_seconds"] else "-"
    return [format_size(point["peak_bytes"]), format_seconds(point["step_seconds"]), over, recompute]


def what_if_table(report: Mapping[str, Any]) -> Table:
    table = _table("What if", "*change", "fits", "peak", "min peak", "fastest", "step", "overhead")
    for row in report["what_if"]:
        sizes = [format_size(row[key]) for key in ("peak_bytes", "min_peak_bytes", "fastest_bytes")]
        fits = "yes" if row["fits"] else "NO"
        cells = [row["change"], fits, *sizes, format_seconds(row["step_seconds"]), f"{row['overhead']:.1%}"]
        _add(table, cells, "" if row["fits"] else "red")
    return table


def kinds_table(report: Mapping[str, Any]) -> Table | None:
    """Live bytes by kind and by module at the peak of the step, or of the graph with the largest one; or None."""
    graph = report.get("step") or max(report["graphs"], key=lambda one: one["peak_bytes"], default=None)
    if graph is None or "at_peak" not in graph:
        return None
    live = dict(graph["at_peak"]["by_kind"])
    if optimizer := optimizer_bytes(report):
        live[OPTIMIZER] = optimizer
    kinds = _largest(live, len(live))
    modules = _largest(graph["at_peak"]["by_module"], MODULES)
    if not kinds:
        return None
    total, most = sum(live.values()), kinds[0][1]
    table = _table("What is live at the peak", "*by kind", "", "", "", "*by module", "")
    table.columns[1].justify = "left"
    for kind, module in zip_longest(kinds, modules):
        left = [kind[0], _bar(kind[1] / most), format_size(kind[1]), _share(kind[1] / total)] if kind else [""] * 4
        right = [module[0] or "(the model itself)", format_size(module[1])] if module else [""] * 2
        _add(table, [*left, *right])
    return table


def _largest(live: Mapping[str, int], count: int) -> list[tuple[str, int]]:
    return sorted(((name, size) for name, size in live.items() if size), key=lambda entry: -entry[1])[:count]


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 else "<1%"


def _bar(share: float) -> str:
    whole, part = divmod(max(1, round(8 * _BAR * share)), 8)
    return "█" * whole + _EIGHTHS[part].rstrip()


def tensor_table(groups: Sequence[TensorGroup]) -> Table:
    """Source and reason of a tensor share a cell, one below the other."""
    table = _table("Largest tensors", "*decision", "", "each", "to recompute", "*source and reason")
    table.columns[0].ratio, table.columns[0].justify = None, "left"
    table.columns[-1].no_wrap = False
    for group in groups:
        first = group.first
        count = f"{len(group.tensors)} ×" if len(group.tensors) > 1 else ""
        where = Text(f"{group.place} {group.module}".rstrip(), style="bold")
        cell = Text.assemble(where, ("\n" + first["reason"] if first["reason"] else "", "dim"))
        cells = [first["decision"], count, format_size(first["bytes"]), format_seconds(first["seconds"])]
        table.add_row(*map(Text, cells), cell)
    return table


def _table(title: str, *headings: str) -> Table:
    """Columns whose heading begins with `*` hold words: left-aligned, they share the width that the numbers leave."""
    table = Table(title=Text(title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD, expand=True)
    table.show_edge, table.pad_edge, table.collapse_padding = False, False, True
    for heading in headings:
        words = heading.startswith("*")
        table.add_column(
            Text(heading.removeprefix("*")),
            justify="left" if words else "right",
            ratio=1 if words else None,
            no_wrap=True,
            overflow="ellipsis",
        )
    return table


def _add(table: Table, cells: Sequence[str], style: str = "") -> None:
    # As Text: strings from a user's code may look like rich's markup.
    table.add_row(*(Text(cell) for cell in cells), style=style)
