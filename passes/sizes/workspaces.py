"""Workspaces that were measured at one choice of dynamic sizes, at another."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from autockpt.passes.graph import JointGraph


def scaled_workspaces(workspaces: Mapping[str, int], measured_at: JointGraph, graph: JointGraph) -> Mapping[str, int]:
    """Each grows like the operand or result of its operation that grows most: it holds copies of these."""
    if graph is measured_at:
        return workspaces
    return {name: ceil(nbytes * _growth(name, measured_at, graph)) for name, nbytes in workspaces.items()}


def _growth(name: str, measured_at: JointGraph, graph: JointGraph) -> float:
    operands = [name, *graph.by_name[name].inputs]
    pairs = [(graph.bytes_of(operand), measured_at.bytes_of(operand)) for operand in operands]
    return max((now / before for now, before in pairs if before), default=1.0)
