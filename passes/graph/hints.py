"""A graph with dynamic sizes -> the same graph in numbers: the one place where numbers replace symbols.

Readers and formulas work with sympy expressions; planners, forecasts and reports with numbers: the sizes of the traced
call, its hints, or larger ones that a plan is made for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import ceil
from typing import Any

from autockpt.cost_models import TensorSpec
from autockpt.cost_models.formulas import evaluate, evaluate_spec, number_at
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.value import Value


def at_hints(graph: JointGraph) -> JointGraph:
    """At the sizes of the traced call. A static graph is returned as it is."""
    return at_sizes(graph, graph.hints) if graph.hints else graph


def all_sizes(graph: JointGraph, sizes: Mapping[Any, int]) -> Mapping[Any, int]:
    """These sizes of a call, and bounds of those that depend on data."""
    return {**sizes, **{symbol: int(number_at(bound, sizes)) for symbol, (bound, _) in graph.bounds.items()}}


def at_sizes(graph: JointGraph, sizes: Mapping[Any, int]) -> JointGraph:
    """Every size, byte count and amount of work as a number; sizes that depend on data are at their bounds."""
    hints = all_sizes(graph, sizes)

    @cache
    def spec(symbolic: TensorSpec | None) -> TensorSpec | None:
        return evaluate_spec(symbolic, hints) if symbolic is not None else None

    @cache
    def nbytes(symbolic: Any) -> int:
        return int(number_at(symbolic, hints))

    def value(symbolic: Value) -> Value:
        work = evaluate(symbolic.work, hints) if symbolic.work is not None else None
        inner = ceil(symbolic.inner_bytes * growth(symbolic)) if symbolic.inner_bytes else 0
        return replace(symbolic, spec=spec(symbolic.spec), work=work, inner_bytes=inner)

    def growth(symbolic: Value) -> float:
        """Of the operand or result that grows most since the trace: what is inside its call holds copies of these."""
        names = [symbolic.name, *symbolic.inputs, *graph.readers[symbolic.name]]
        owned = [graph.bytes[owner] for name in names if (owner := graph.by_name[name].storage)]
        traced = [int(number_at(one, graph.hints)) for one in owned]
        return max((nbytes(one) / was for one, was in zip(owned, traced, strict=True) if was), default=1.0)

    return JointGraph(
        values=tuple(map(value, graph.values)),
        bytes={name: nbytes(size) for name, size in graph.bytes.items()},
        forward_outputs=graph.forward_outputs,
        backward_outputs=graph.backward_outputs,
        symbolic=graph,
    )
