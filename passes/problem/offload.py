"""Which values may wait on the host, and whether the moments that a plan states for their copies are possible."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from autockpt.passes.graph import JointGraph, Kind, Role, Trait
from autockpt.passes.problem.plan import Plan, Problem

_TAGGED = "tagged by the user to wait on the host"


def may_offload(problem: Problem, name: str) -> bool:
    """Whether a value, if it is saved, can be copied as a whole.

    It owns its bytes, and all of them are elements: of a view the base is saved. It is not an output of the forward,
    which the caller holds anyway, and lives on the device that computes.
    """
    graph = problem.graph
    value = graph.by_name[name]
    if value.role is not Role.FORWARD or not value.owns_bytes or value.kind is Kind.SYMBOL or value.spec is None:
        return False
    if Trait.DATA_SIZE in value.traits or name in graph.output_storages:
        return False
    elements = 1
    for size in value.spec.shape:
        elements *= size
    return graph.bytes_of(name) == elements * value.spec.itemsize > 0


def with_tags(problem: Problem) -> Problem:
    """The problem in which values that the user tagged MUST_CPU_OFFLOAD or PREFER_CPU_OFFLOAD are must-save, and wait
    on the host wherever they can. A view stands for its base."""
    graph = problem.graph
    bases = (value.storage for value in graph.values if Trait.OFFLOAD in value.traits)
    tagged = frozenset(name for name in bases if name is not None and may_offload(problem, name))
    if not tagged:
        return problem
    must_save = {**dict.fromkeys(sorted(tagged), _TAGGED), **problem.must_save}
    return replace(problem, must_save=must_save, tagged_offload=tagged)


def forward_order(problem: Problem, plan: Plan) -> list[str]:
    """Operations that run in the forward of a plan, in order."""
    graph = problem.graph
    extra = graph.cone(sorted(plan.saved))
    names = (value.name for value in graph.values if value.role is Role.FORWARD)
    return [name for name in names if name in graph.required_forward or name in extra]


def broken_offload(problem: Problem, plan: Plan) -> str | None:
    """What is wrong with the first offload that cannot be; None if all can."""
    if not plan.offloaded:
        return None
    graph = problem.graph
    order = {name: number for number, name in enumerate(forward_order(problem, plan))}
    last_use = last_forward_uses(graph, order)
    first_use = first_backward_uses(graph, plan)
    twice = {name for name, count in Counter(offload.name for offload in plan.offloaded).items() if count > 1}
    for offload in plan.offloaded:
        name = offload.name
        if name not in plan.saved:
            return f"`{name}` is offloaded but not saved"
        if name in twice:
            return f"`{name}` is offloaded twice"
        if not may_offload(problem, name):
            return f"`{name}` is offloaded but may not be"
        if order.get(offload.release_after, -1) < last_use[name]:
            return f"`{name}` is released after `{offload.release_after}`, before its last use in the forward"
        if not 0 <= offload.reload_before <= first_use.get(name, -1):
            return f"`{name}` is reloaded at {offload.reload_before}, which is not before its first use in the backward"
    return None


def last_forward_uses(graph: JointGraph, order: dict[str, int]) -> dict[str, int]:
    """By storage, the last position at which an operation of the forward reads or writes it."""
    last: dict[str, int] = {}
    for name, position in order.items():
        for touched in (name, *graph.by_name[name].inputs):
            if storage := graph.by_name[touched].storage:
                last[storage] = position
    return last


def first_backward_uses(graph: JointGraph, plan: Plan) -> dict[str, int]:
    """By name, the first position of the backward at which a value is read."""
    first: dict[str, int] = {}
    for position, name in enumerate(plan.backward):
        for source in graph.by_name[name].inputs:
            first.setdefault(source, position)
    return first
