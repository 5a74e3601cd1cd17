"""From a saved set to a plan: the backward in order, each missing value recomputed just before its first use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from autockpt.passes.graph import JointGraph, Role, Trait, backward_orders, collective_order, gathers_again
from autockpt.passes.problem.plan import Plan, Problem


class Scheduler:
    """Turns many saved sets of one graph into plans.

    A missing value is recomputed just before its first use and held to its last use. With `inner` values, a missing
    segment is rebuilt in two levels: what is computed only to reach an inner value is dropped again as soon as that
    value exists, and recomputed a second time from there when the backward reads it. Sizes that depend on data have no
    bytes and may be defined only once: they are saved wherever they are read.
    """

    def __init__(self, graph: JointGraph, order: Sequence[str]) -> None:
        self._names = [value.name for value in graph.values]
        self._position = {name: number for number, name in enumerate(self._names)}
        self._inputs = [tuple(self._position[name] for name in value.inputs) for value in graph.values]
        self._is_graph_input = [value.role.is_graph_input for value in graph.values]
        self._is_data_size = [Trait.DATA_SIZE in v.traits and v.role is Role.FORWARD for v in graph.values]
        self._order = [self._position[name] for name in (*order, *graph.backward_outputs)]

    def __call__(self, saved: Iterable[str], inner: Iterable[str] = ()) -> Plan:
        saved = frozenset(saved)
        available = list(self._is_graph_input)
        for name in saved:
            available[self._position[name]] = True
        held = frozenset(self._position[name] for name in inner)
        backward: list[int] = []
        sizes: set[int] = set()
        for number in self._order:
            if not available[number]:
                missing = self._recompute(number, available, sizes)
                if held:
                    self._drop_behind(held, number, missing, available)
                backward.extend(missing)
        saved |= {self._names[number] for number in sizes}
        return Plan(saved, tuple(self._names[number] for number in backward))

    def _recompute(self, number: int, available: list[bool], sizes: set[int]) -> list[int]:
        """This value and all that is missing for it, in the order of the graph; all of it is available afterwards.

        Sizes that depend on data are not recomputed but added to `sizes`.
        """
        available[number] = True
        missing = [number] if not self._is_data_size[number] else []
        sizes.update({number} - set(missing))
        for found in missing:
            for source in self._inputs[found]:
                if not available[source]:
                    available[source] = True
                    if self._is_data_size[source]:
                        sizes.add(source)
                    else:
                        missing.append(source)
        missing.sort()
        return missing

    def _drop_behind(self, inner: frozenset[int], wanted: int, missing: list[int], available: list[bool]) -> None:
        """Make unavailable again what was recomputed only to reach an inner value.

        `direct` holds the values from which a path leads to `wanted` without an inner value on it. They stay
        available, and so do the inner values themselves.
        """
        direct = {wanted}
        for found in reversed(missing):
            available[found] = found in direct or found in inner
            if found in direct and found not in inner:
                direct.update(source for source in self._inputs[found] if source < found)


def planned_collectives(problem: Problem) -> tuple[str, ...] | None:
    """The collectives of the backward, in the one order in which every plan has to run them: that of the plan which
    recomputes as little as possible. None where no plan recomputes any, so that all have the traced order."""
    graph = problem.graph
    if not gathers_again(graph):
        return None
    order = backward_orders(graph)[-1]
    saved = savable_set(problem, [value.name for value in graph.values if value.role is Role.FORWARD])
    return collective_order(graph, Scheduler(graph, order)(saved).backward)


def plans_saving(problem: Problem, names: Collection[str]) -> Iterator[Plan]:
    """Plans that save these values, or what they are views of or computed from where they may not be saved."""
    saved = savable_set(problem, names)
    for order in backward_orders(problem.graph):
        yield Scheduler(problem.graph, order)(saved)


def savable_set(problem: Problem, names: Collection[str]) -> frozenset[str]:
    """Of these values those that the backward needs, with the must-save values on the path to them."""
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
    """These values, each that may not be saved replaced by the storage or the inputs that it is made from."""
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
