"""Orders in which the backward's own operations may run."""

from __future__ import annotations

from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.value import Kind, Role, Trait

_ORDERED_TRAITS = {Trait.MUTATES, Trait.EFFECT, Trait.COLLECTIVE, Trait.RANDOM, Trait.SEED}
"""Side effects that other operations may observe: a backward with one of them runs as it was traced."""


def backward_orders(graph: JointGraph) -> list[tuple[str, ...]]:
    """The traced order and, where no side effect forbids it, the order with weight gradients first.

    Operators that nobody vouched for may have a state in common: they run in the traced order among themselves.
    """
    traced = traced_order(graph)
    if any(graph.by_name[name].traits & _ORDERED_TRAITS for name in traced):
        return [traced]
    early = leaves_first(graph)
    return [traced, early] if _unvouched(graph, traced) == _unvouched(graph, early) else [traced]


def _unvouched(graph: JointGraph, order: tuple[str, ...]) -> list[str]:
    return [name for name in order if graph.by_name[name].unvouched]


def traced_order(graph: JointGraph) -> tuple[str, ...]:
    """The backward operations as autograd traced them."""
    return tuple(value.name for value in graph.values if value.role is Role.BACKWARD)


def leaves_first(graph: JointGraph) -> tuple[str, ...]:
    """The same operations with each weight gradient as early as its inputs allow.

    Autograd computes a layer's input gradient first and its weight gradient second, which holds the layer's input
    one operation longer than needed. Operations that lead to one output and to nothing else come first.
    """
    leaves = _leaves(graph)
    order: list[str] = []
    done: set[str] = set()

    def ready(name: str) -> bool:
        sources = (graph.by_name[source] for source in graph.by_name[name].inputs)
        return all(source.role is not Role.BACKWARD or source.name in done for source in sources)

    for first in traced_order(graph):
        stack = [first]
        while stack:
            name = stack.pop()
            if name in done or not ready(name):
                continue
            done.add(name)
            order.append(name)
            eager = [
                reader
                for reader in graph.readers[name]
                if reader in leaves or graph.by_name[reader].kind in (Kind.VIEW, Kind.PART)
            ]
            stack.extend(reversed(eager))
    return tuple(order)


def _leaves(graph: JointGraph) -> frozenset[str]:
    """Backward operations whose result reaches an output through one reader at a time."""
    outputs = set(graph.backward_outputs)
    leaves: set[str] = set()
    for value in reversed(graph.values):
        readers = graph.readers[value.name]
        if value.role is Role.BACKWARD and (
            (not readers and value.name in outputs) or (len(readers) == 1 and readers[0] in leaves)
        ):
            leaves.add(value.name)
    return frozenset(leaves)
