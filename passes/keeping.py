"""Values that somebody else would save -> plans that are allowed to us."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from autockpt.passes.joint import JointGraph, Role, Trait
from autockpt.passes.min_cut import demanded
from autockpt.passes.plan import Plan, Problem
from autockpt.passes.schedule import Scheduler, leaves_first, traced_order


def keeping(problem: Problem, names: Collection[str]) -> Iterator[Plan]:
    """Plans that keep these values, or what they are views of or computed from where they may not be kept."""
    kept = completed(problem, names)
    for order in orders(problem.graph):
        yield Scheduler(problem.graph, order)(kept)


def orders(graph: JointGraph) -> list[tuple[str, ...]]:
    """As traced, and with weight gradients first where no side effect forbids it."""
    fixed = {Trait.MUTATES, Trait.EFFECT, Trait.COLLECTIVE, Trait.RANDOM, Trait.SEED}
    if any(value.role is Role.BACKWARD and value.traits & fixed for value in graph.values):
        return [traced_order(graph)]
    return [traced_order(graph), leaves_first(graph)]


def completed(problem: Problem, names: Collection[str]) -> frozenset[str]:
    """Of these values those that the backward has use for, and what is pinned on the way to them."""
    wanted = _keepable(problem, names)
    kept: set[str] = set()
    seen: set[str] = set()
    stack = sorted(demanded(problem))
    while stack:
        name = stack.pop()
        value = problem.graph.by_name[name]
        if name in seen or value.role.is_given:
            continue
        seen.add(name)
        if name in wanted or (name in problem.pinned and name not in problem.unkeepable):
            kept.add(name)
        else:
            stack.extend(value.inputs)
    return frozenset(kept)


def _keepable(problem: Problem, names: Collection[str]) -> set[str]:
    values = problem.graph.by_name
    found: set[str] = set()
    seen: set[str] = set()
    stack = list(names)
    while stack:
        name = stack.pop()
        if name in seen or values[name].role is not Role.FORWARD:
            continue
        seen.add(name)
        if name in problem.unkeepable:
            stack.extend([values[name].storage] if values[name].storage not in ("", name) else values[name].inputs)
        else:
            found.add(name)
    return found
