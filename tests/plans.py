"""Decisions of graphs small enough to draw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from graphs import chain

from autockpt.cost_models import load_profile
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.value import Source, Trait
from autockpt.passes.planners.decide import Decision, decide
from autockpt.passes.problem.plan import Budget, Lowering, Setup


def layers(length: int, **traits: Iterable[Trait]) -> JointGraph:
    """A chain whose operators have a price, each from a module of its own."""
    return priced(chain(length, **traits))


def priced(graph: JointGraph) -> JointGraph:
    values = (replace(v, operator="aten.tanh.default", source=Source(f"layers.{v.name[1:]}")) for v in graph.values)
    return replace(graph, values=tuple(values))


def setup(budget: Budget) -> Setup:
    return Setup(budget, load_profile("cpu"), Lowering.EAGER)


def decision(graph: JointGraph, fraction: float = 0.5) -> Decision:
    return decide(graph, setup(Budget(fraction=fraction)))
