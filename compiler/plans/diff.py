"""The difference of two plan files: graphs, tensors that only one saves, the order of the backward, the forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from autockpt.passes.graph import difference
from autockpt.plans.graph_plan import GraphPlan, SavedTensor
from autockpt.plans.plan_file import PlanFile

SCHEMA = 2


@dataclass(frozen=True)
class GraphDiff:
    """Two plans of one graph, two graphs without a counterpart in the other file, or one such graph."""

    one: GraphPlan | None
    other: GraphPlan | None
    names: tuple[str, str]
    """Of the two files."""

    @property
    def graph_difference(self) -> str:
        """The first difference of the two graphs; empty where they are equal."""
        if self.one is None or self.other is None:
            return f"only in {self.names[self.one is None]}"
        if self.one.outline == self.other.outline:
            return ""
        return difference(self.one.outline, self.other.outline, *self.names)

    @property
    def order_difference(self) -> str:
        """The first difference of the two backwards; empty where they are equal, or the graphs are not."""
        if self.one is None or self.other is None or self.graph_difference:
            return ""
        pairs = enumerate(zip_longest(self.one.backward, self.other.backward, fillvalue="nothing"), start=1)
        first = next(((number, *names) for number, names in pairs if names[0] != names[1]), None)
        if first is None:
            return ""
        number, mine, theirs = first
        return f"operation {number} is `{mine}` in {self.names[0]} but `{theirs}` in {self.names[1]}"

    @property
    def is_same(self) -> bool:
        """Whether the two run the same operations; their forecasts may differ."""
        return not (self.graph_difference or self.order_difference or any(self.saved_only))

    @property
    def saved_only(self) -> tuple[tuple[SavedTensor, ...], tuple[SavedTensor, ...]]:
        """The tensors that only the first plan saves, and those that only the second does; the largest first."""
        if self.one is None or self.other is None or self.graph_difference:
            return (), ()
        return _only(self.one, self.other), _only(self.other, self.one)

    def as_json(self) -> dict[str, Any]:
        known = self.one or self.other
        first, second = self.saved_only
        return {
            "structure": known.outline.structure if known else "",
            "same": self.is_same,
            "graph_difference": self.graph_difference,
            "order_difference": self.order_difference,
            "saved_only_by_a": [_saved_json(saved) for saved in first],
            "saved_only_by_b": [_saved_json(saved) for saved in second],
            "a": _summary(self.one),
            "b": _summary(self.other),
        }


def compare(one: PlanFile, other: PlanFile, names: tuple[str, str]) -> tuple[GraphDiff, ...]:
    """Graphs that both files have, then the others in their order."""
    theirs = {graph.outline: graph for graph in other.graphs}
    mine = {graph.outline for graph in one.graphs}
    both = [(graph, theirs[graph.outline]) for graph in one.graphs if graph.outline in theirs]
    alone = [graph for graph in one.graphs if graph.outline not in theirs]
    others = [graph for graph in other.graphs if graph.outline not in mine]
    return tuple(GraphDiff(a, b, names) for a, b in (*both, *zip_longest(alone, others)))


def diff_json(graphs: Sequence[GraphDiff]) -> dict[str, Any]:
    same = all(graph.is_same for graph in graphs)
    return {"schema": SCHEMA, "kind": "autockpt diff", "same": same, "graphs": [graph.as_json() for graph in graphs]}


def _only(one: GraphPlan, other: GraphPlan) -> tuple[SavedTensor, ...]:
    only = [saved for saved in one.saved if saved.name not in other.plan.saved]
    return tuple(sorted(only, key=lambda saved: (-saved.nbytes, saved.name)))


def _saved_json(saved: SavedTensor) -> dict[str, Any]:
    return {"name": saved.name, "bytes": saved.nbytes, "module": saved.module}


def _summary(graph: GraphPlan | None) -> dict[str, Any] | None:
    if graph is None:
        return None
    return {
        "values": len(graph.outline.values),
        "saved": len(graph.saved),
        "saved_bytes": graph.saved_bytes,
        "recomputations": graph.recomputations,
        "lowering": graph.lowering.value,
        "peak_bytes": graph.peak_bytes,
        "step_seconds": graph.step_seconds,
        "recompute_seconds": graph.recompute_seconds,
    }
