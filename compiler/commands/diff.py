"""`autockpt diff A B`: two plan files side by side, with the exit code of diff(1)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from autockpt.commands.console import stdout_console
from autockpt.units import format_size

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from autockpt.plans import GraphDiff, GraphPlan

_MOST_ROWS = 40
_WIDEST = 60
"""Characters of a name in a table: a plan file may hold names of any length."""

_ROWS: dict[str, Callable[[GraphPlan], str]] = {
    "saved": lambda graph: f"{format_size(graph.saved_bytes)} in {len(graph.saved)} tensors",
    "recomputed operations": lambda graph: str(graph.recomputations),
    "forecast peak": lambda graph: format_size(graph.peak_bytes),
    "forecast step": lambda graph: f"{graph.step_seconds * 1e3:.3f} ms",
    "of it recomputation": lambda graph: f"{graph.recompute_seconds * 1e3:.3f} ms",
    "lowered by": lambda graph: graph.lowering.value,
}


@click.command()
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def command(one: str, other: str, as_json: bool) -> int:
    """Show what two saved plans do differently: files that `plan.save` or `analyze --save-plan` wrote.

    Exit code 0 where both hold the same plans, 1 where not, 2 where a file is no plan.
    """
    from autockpt.plans import PlanFile, compare, diff_json

    names = (one, other) if one != other else ("A", "B")
    graphs = compare(PlanFile.load(one), PlanFile.load(other), names)
    if as_json:
        print(json.dumps(diff_json(graphs), indent=1))
    else:
        console = stdout_console(120)
        for part in render(graphs, names):
            console.print(part, highlight=False)
    return 0 if all(graph.is_same for graph in graphs) else 1


def render(graphs: Sequence[GraphDiff], names: tuple[str, str]) -> list[RenderableType]:
    from rich.text import Text

    same = all(graph.is_same for graph in graphs)
    verdict = "hold the same plan" if same else "hold different plans"
    parts: list[RenderableType] = [Text(f"{names[0]} and {names[1]} {verdict}")]
    for number, graph in enumerate(graphs):
        parts += [Text(f"\n{_sentence(graph, number)}"), _summary(graph)]
        if any(graph.saved_only):
            parts += _saved(graph)
    return parts


def _sentence(graph: GraphDiff, number: int) -> str:
    if graph.one is None or graph.other is None:
        return f"graph {number} is {graph.graph_difference}"
    if graph.graph_difference:
        return f"graph {number} is not the same graph: {graph.graph_difference}"
    known = f"graph {number}, {len(graph.one.outline.values)} values, structure {graph.one.outline.structure[:12]}"
    if graph.order_difference:
        return f"{known}; in the backward {graph.order_difference}"
    return f"{known}: {'the same plan' if graph.is_same else 'the same backward, but other tensors are saved'}"


def _summary(graph: GraphDiff) -> Table:
    from rich.table import Column, Table

    table = Table("", *(Column(_cell(name)) for name in graph.names))
    for name, show in _ROWS.items():
        table.add_row(name, *(show(plan) if plan else "" for plan in (graph.one, graph.other)))
    return table


def _saved(graph: GraphDiff) -> list[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    table = Table("saved only by", "tensor", "size", "module")
    rows = [(name, saved) for name, only in zip(graph.names, graph.saved_only, strict=True) for saved in only]
    for name, saved in rows[:_MOST_ROWS]:
        table.add_row(_cell(name), _cell(saved.name), format_size(saved.nbytes), _cell(saved.module))
    left = len(rows) - _MOST_ROWS
    return [table, Text(f"and {left} more; --json has them all")] if left > 0 else [table]


def _cell(text: str) -> Text:
    from rich.text import Text

    return Text(text if len(text) <= _WIDEST else f"{text[:_WIDEST]}...")
