"""Collectives of a joint graph: in which order the backward runs them, and gathers that it runs again.

A rank waits in a collective until all others of its group are at the same one, so all must run the same collectives in
the same order. A gather of the forward that only saves its result for the backward can be run again there instead, as
sequence parallelism does by hand (Korthikanti et al. 2022): its input is as large as its result divided by the ranks.
That is a property of the graph, not of a plan: `gathered_again` marks all such gathers, and every plan of the graph it
returns runs each of them once more, in one order. So ranks may run different plans of it and never wait in vain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.operators import packet_of
from autockpt.passes.graph.value import Kind, Role, Trait, Value

_GATHERS = ("_c10d_functional.all_gather_into_tensor.",)
_MOVES = ("aten.cat", "aten.clone", "aten.split", "aten.split_with_sizes", "aten.permute", "aten.slice")
_WAIT = "_c10d_functional.wait_tensor."


def is_wait(value: Value) -> bool:
    """Whether it is the result of a collective after it was waited for: the same memory."""
    return value.operator.startswith(_WAIT)


def gathered_again(graph: JointGraph) -> JointGraph | None:
    """The same graph with its gathers marked to be run again in the backward; None where there is none to run again."""
    marked = {name for value in graph.values if is_wait(value) for name in _gather(graph, value)}
    if not marked:
        return None
    must_save = frozenset({Trait.MUST_SAVE})
    values = tuple(
        replace(v, traits=(v.traits - must_save) | {Trait.GATHERED_AGAIN}, unvouched=()) if v.name in marked else v
        for v in graph.values
    )
    return replace(graph, values=values)


def _gather(graph: JointGraph, wait: Value) -> Iterable[str]:
    """A gather, its wait and what rearranges the result, where the backward's own operations read any of it: then
    every plan needs it there."""
    (launch,) = wait.inputs
    source = graph.by_name[launch]
    if wait.role is not Role.FORWARD or not source.operator.startswith(_GATHERS):
        return ()
    if graph.readers[launch] != (wait.name,) or Trait.STALE in wait.traits | source.traits:
        return ()
    whole = _rearranged(graph, wait.name)
    if not graph.output_storages.isdisjoint(graph.by_name[name].storage for name in whole):
        return ()
    readers = (graph.by_name[reader] for name in whole for reader in graph.readers[name])
    return {launch, *whole} if any(reader.role is Role.BACKWARD for reader in readers) else ()


def _rearranged(graph: JointGraph, name: str) -> set[str]:
    """This value, and what is computed of it alone by operators that only move elements: a gather along another
    dimension than the first is one along the first, cut and put together."""
    found, pending = {name}, [name]
    while pending:
        for reader in (graph.by_name[reader] for reader in graph.readers[pending.pop()]):
            moves = reader.kind in (Kind.VIEW, Kind.PART) or packet_of(reader.operator) in _MOVES
            if moves and reader.name not in found and reader.role is Role.FORWARD and found.issuperset(reader.inputs):
                found.add(reader.name)
                pending.append(reader.name)
    return found


def gathers_again(graph: JointGraph) -> bool:
    return any(Trait.GATHERED_AGAIN in value.traits for value in graph.values)


def collective_order(graph: JointGraph, sequence: Iterable[str]) -> tuple[str, ...]:
    """The collectives among these operations, without waits: those end where the others are."""
    values = (graph.by_name[name] for name in sequence)
    return tuple(value.name for value in values if Trait.COLLECTIVE in value.traits and not is_wait(value))
