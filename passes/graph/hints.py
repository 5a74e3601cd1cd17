"""A graph with dynamic sizes -> the same graph in numbers: the one place where hints replace symbols.

Readers and formulas work with sympy expressions; planners, forecasts and reports with the numbers of the traced call.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from autockpt.cost_models import TensorSpec
from autockpt.cost_models.formulas import evaluate, evaluate_spec, number_at
from autockpt.passes.graph.joint import JointGraph, Value


def at_hints(graph: JointGraph) -> JointGraph:
    """Every size, byte count and amount of work as a number. A static graph is returned as it is."""
    if not graph.hints:
        return graph
    hints = graph.hints

    @cache
    def spec(symbolic: TensorSpec | None) -> TensorSpec | None:
        return evaluate_spec(symbolic, hints) if symbolic is not None else None

    @cache
    def nbytes(symbolic: Any) -> int:
        return int(number_at(symbolic, hints))

    def value(symbolic: Value) -> Value:
        work = evaluate(symbolic.work, hints) if symbolic.work is not None else None
        return replace(symbolic, spec=spec(symbolic.spec), work=work)

    return JointGraph(
        values=tuple(map(value, graph.values)),
        bytes={name: nbytes(size) for name, size in graph.bytes.items()},
        forward_outputs=graph.forward_outputs,
        backward_outputs=graph.backward_outputs,
        symbolic=graph,
    )
