"""Kept values -> Plan: the backward in order, every missing value recomputed just before its first use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autockpt.passes.joint import JointGraph, Kind, Role
from autockpt.passes.plan import Plan


def traced_order(graph: JointGraph) -> tuple[str, ...]:
    """The backward operations as autograd traced them."""
    return tuple(value.name for value in graph.values if value.role is Role.BACKWARD)


def leaves_first(graph: JointGraph) -> tuple[str, ...]:
    """The same operations with weight gradients as soon as they can be had.

    Autograd asks for a layer's input gradient first and for its weight gradient second, which holds the
    layer's input one operation longer than needed. What leads to one output and nothing else comes first.
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
    """Backward operations whose result goes, through one reader at a time, into an output."""
    outputs = set(graph.backward_outputs)
    leaves: set[str] = set()
    for value in reversed(graph.values):
        readers = graph.readers[value.name]
        if value.role is Role.BACKWARD and (
            (not readers and value.name in outputs) or (len(readers) == 1 and readers[0] in leaves)
        ):
            leaves.add(value.name)
    return frozenset(leaves)


def schedule(graph: JointGraph, kept: Iterable[str], order: Sequence[str]) -> Plan:
    """The plan that keeps these values and recomputes the rest just in time, each once."""
    kept = frozenset(kept)
    available = set(kept)
    available.update(value.name for value in graph.values if value.role.is_given)
    position = {value.name: index for index, value in enumerate(graph.values)}
    backward: list[str] = []
    for name in (*order, *graph.backward_outputs):
        if name in available:
            continue
        for missing in sorted(_missing(graph, name, available), key=position.__getitem__):
            available.add(missing)
            backward.append(missing)
    return Plan(frozenset(kept), tuple(backward))


def _missing(graph: JointGraph, name: str, available: set[str]) -> set[str]:
    missing = {name}
    stack = [name]
    while stack:
        for source in graph.by_name[stack.pop()].inputs:
            if source not in available and source not in missing:
                missing.add(source)
                stack.append(source)
    return missing
