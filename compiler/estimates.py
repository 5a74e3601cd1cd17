"""Operators that no formula knows, named: an estimate is never silent."""

from __future__ import annotations

from collections.abc import Mapping

from autockpt.passes.joint import JointGraph
from autockpt.passes.price import work_in


def estimated_operators(graph: JointGraph, measured: Mapping[str, float]) -> dict[str, str]:
    """Each with what its seconds rest on: "measured" only where every call of it was timed."""
    timed: dict[str, bool] = {}
    for value in graph.values:
        if value.kind.runs and work_in(graph, value).estimated:
            timed[value.operator] = timed.get(value.operator, True) and value.name in measured
    return {operator: "measured" if timed[operator] else "by bytes" for operator in sorted(timed)}


def named(estimated: Mapping[str, str]) -> str:
    """The end of a sentence; empty where there is nothing to name."""
    if not estimated:
        return ""
    return "; estimated, no formula: " + ", ".join(f"{operator} ({basis})" for operator, basis in estimated.items())
