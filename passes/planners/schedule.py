"""SavedTensor values -> Plan: the backward in order, every missing value recomputed just before its first use.

Values that somebody else would save -> plans that are allowed to us.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from autockpt.passes.graph import JointGraph, Kind, Role, Trait
from autockpt.passes.problem import Plan, Problem


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


def schedule(graph: JointGraph, saved: Iterable[str], order: Sequence[str]) -> Plan:
    """The plan that keeps these values and recomputes the rest just in time, each once."""
    return Scheduler(graph, order)(saved)


_ORDINARY = 2
_DURABLE = 1


class Scheduler:
    """Turns many saved sets of one graph into plans.

    What is missing is recomputed just before its first use, and held to its last. With `durable` values, a missing
    segment is rebuilt in two steps: a value survives its own recomputation unless a durable one stands between it and
    what was asked for. Then only the durable one is held, and the rest is computed again, a second time, from there.
    """

    def __init__(self, graph: JointGraph, order: Sequence[str]) -> None:
        self._names = [value.name for value in graph.values]
        self._position = {name: number for number, name in enumerate(self._names)}
        self._inputs = [tuple(self._position[name] for name in value.inputs) for value in graph.values]
        self._given = [value.role.is_graph_input for value in graph.values]
        self._order = [self._position[name] for name in (*order, *graph.backward_outputs)]

    def __call__(self, saved: Iterable[str], durable: Iterable[str] = ()) -> Plan:
        saved = frozenset(saved)
        available = list(self._given)
        for name in saved:
            available[self._position[name]] = True
        lasting = frozenset(self._position[name] for name in durable)
        fetch = self._fetch_in_steps if lasting else self._fetch
        backward: list[int] = []
        for number in self._order:
            if not available[number]:
                backward.extend(fetch(number, available, lasting))
        return Plan(saved, tuple(self._names[number] for number in backward))

    def _fetch(self, number: int, available: list[bool], _: frozenset[int]) -> list[int]:
        """This value and all that is missing for it, in the order of the graph."""
        available[number] = True
        missing = [number]
        for found in missing:
            for source in self._inputs[found]:
                if not available[source]:
                    available[source] = True
                    missing.append(source)
        missing.sort()
        return missing

    def _fetch_in_steps(self, number: int, available: list[bool], durable: frozenset[int]) -> list[int]:
        """The same, but what lies behind a durable value is forgotten again."""
        missing = self._fetch(number, available, durable)
        reach = {number: _ORDINARY}
        for found in reversed(missing):
            level = _DURABLE if found in durable else _ORDINARY
            available[found] = level <= reach[found]
            onward = min(level, reach[found])
            for source in self._inputs[found]:
                # SavedTensor and given values are not in the way of anything: they were there before.
                if source < found and onward > reach.get(source, 0):
                    reach[source] = onward
        return missing


def keeping(problem: Problem, names: Collection[str]) -> Iterator[Plan]:
    """Plans that keep these values, or what they are views of or computed from where they may not be saved."""
    saved = completed(problem, names)
    for order in orders(problem.graph):
        yield Scheduler(problem.graph, order)(saved)


def orders(graph: JointGraph) -> list[tuple[str, ...]]:
    """As traced, and with weight gradients first where no side effect forbids it."""
    fixed = {Trait.MUTATES, Trait.EFFECT, Trait.COLLECTIVE, Trait.RANDOM, Trait.SEED}
    if any(value.role is Role.BACKWARD and value.traits & fixed for value in graph.values):
        return [traced_order(graph)]
    return [traced_order(graph), leaves_first(graph)]


def completed(problem: Problem, names: Collection[str]) -> frozenset[str]:
    """Of these values those that the backward has use for, and what is must_save on the way to them."""
    wanted = _savable(problem, names)
    saved: set[str] = set()
    seen: set[str] = set()
    stack = sorted(problem.needed_by_backward)
    while stack:
        name = stack.pop()
        value = problem.graph.by_name[name]
        if name in seen or value.role.is_graph_input:
            continue
        seen.add(name)
        if name in wanted or (name in problem.must_save and name not in problem.unsavable):
            saved.add(name)
        else:
            stack.extend(value.inputs)
    return frozenset(saved)


def _savable(problem: Problem, names: Collection[str]) -> set[str]:
    values = problem.graph.by_name
    found: set[str] = set()
    seen: set[str] = set()
    stack = list(names)
    while stack:
        name = stack.pop()
        if name in seen or values[name].role is not Role.FORWARD:
            continue
        seen.add(name)
        if name in problem.unsavable:
            stack.extend([values[name].storage] if values[name].storage not in ("", name) else values[name].inputs)
        else:
            found.add(name)
    return found
