"""What a forecast needs to know of each value, worked out once for a problem: replays run thousands of times.

Values and storages are positions in the joint graph. A storage is the position of the value that owns its bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from autockpt.passes.graph import ADDITION, MATMULS, JointGraph, Kind, Value, is_heavy, is_wait, packet_of
from autockpt.passes.problem import (
    InductorRules,
    Lowering,
    Problem,
    copied_views,
    is_channels_last,
    is_gathered,
    is_reshaped,
)

VIEW, POINTWISE, REDUCTION, EXTERN, PART = Kind.VIEW, Kind.POINTWISE, Kind.REDUCTION, Kind.EXTERN, Kind.PART
_RUNS_A_KERNEL = {POINTWISE, REDUCTION, EXTERN, PART}
_CONCATENATION = "aten.cat.default"
_SETS_LAYOUT = ("aten.convolution.default", "aten.convolution_backward.default")
_AS_STRIDED = "aten.as_strided.default"

IndexMap = tuple[int, ...]
"""How a read maps to storage: the slices, permutations and gathers between them, by number; empty: the identity."""
Read = tuple[int, IndexMap]
"""A storage, or a buffer of it, and the index map of the read."""
LoopSizes = tuple[int, int]
"""Elements of the result, and elements reduced into each of them (1 without a reduction)."""


@dataclass(frozen=True, slots=True)
class ValueFacts:
    name: str
    kind: Kind
    """VIEW for everything that runs no kernel: views, graph inputs, symbols."""
    storage: int
    """-1 without bytes."""
    nbytes: int
    """Of the storage, on the value that owns it; 0 on all others."""
    reads: tuple[Read, ...]
    """Storages that its kernel reads, once for each distinct index map."""
    shared_inputs: tuple[int, ...]
    """Those of the values it is computed from that have several users."""
    is_shared: bool
    """It has several users."""
    parent: int
    """The operation that a PART is a result of; else -1."""
    parts: tuple[int, ...]
    """Of an operation with several results: those that own bytes."""
    loop_sizes: LoopSizes
    workspace_bytes: int
    is_wait: bool
    """Its result is the memory of its input: a collective that is waited for."""
    is_heavy: bool
    """Inductor on the CPU realizes it rather than compute it once for each reader."""
    is_always_realized: bool
    """Random numbers, and what `as_strided` reads."""
    realizes_inputs: bool
    """What it reads is realized where others read it too."""
    is_concatenation: bool
    writes_into_part: bool
    """Its kernel can write into a part of a larger buffer: loops and matmuls."""
    unviewed_inputs: frozenset[int]
    """Storages that it reads as a whole, not through a view."""
    matmul_terms: tuple[int, ...]
    """Of an addition: the matmuls among its inputs. Inductor may merge it with one of them into `addmm`."""
    sets_layout: bool
    """A convolution, for which Inductor runs a pass channels-last; from torch 2.15 on also the backward of one."""
    is_gathered: bool
    """Taken by index from an activation, and so not in channels-last order whatever its source was."""
    is_channels_last: bool
    is_reshaped: bool
    """Read in another shape, and so written in the order of its dimensions."""


@dataclass(frozen=True, slots=True)
class GraphFacts:
    values: list[ValueFacts]
    position: dict[str, int]
    on_cpu: bool
    rules: InductorRules

    @staticmethod
    def of(problem: Problem) -> GraphFacts:
        graph = problem.graph
        position = {value.name: number for number, value in enumerate(graph.values)}
        copied = copied_views(graph) if problem.lowering is Lowering.INDUCTOR else frozenset()
        storages = [_storage(value, position, copied) for value in graph.values]
        shared = {name for name, readers in graph.readers.items() if len(set(readers)) > 1}
        layout_operators = _SETS_LAYOUT if problem.rules.backward_sets_layout else _SETS_LAYOUT[:1]
        facts = [
            ValueFacts(
                name=value.name,
                kind=_kind(value, copied),
                storage=storage,
                nbytes=graph.bytes_of(value.name) if value.owns_bytes or value.name in copied else 0,
                reads=reads,
                shared_inputs=tuple(dict.fromkeys(position[name] for name in value.inputs if name in shared)),
                is_shared=value.name in shared,
                parent=position[graph.operation_of(value).name] if value.kind is PART else -1,
                parts=_parts(graph, value, position),
                loop_sizes=_loop_sizes(graph, value),
                workspace_bytes=(problem.workspace or {}).get(value.name, 0),
                is_wait=is_wait(value),
                is_heavy=is_heavy(value.operator),
                is_always_realized=_is_always_realized(graph, value),
                realizes_inputs=_realizes_inputs(value),
                is_concatenation=value.operator == _CONCATENATION,
                writes_into_part=_writes_into_part(value),
                unviewed_inputs=frozenset(position[n] for n in value.inputs if graph.by_name[n].owns_bytes),
                matmul_terms=_matmul_terms(graph, value, position),
                sets_layout=value.operator in layout_operators,
                is_gathered=is_gathered(graph, value),
                is_channels_last=is_channels_last(graph, value),
                is_reshaped=is_reshaped(graph, value),
            )
            for value, storage, reads in zip(graph.values, storages, _reads(graph, position, storages), strict=True)
        ]
        on_cpu = all(value.device == "cpu" for value in graph.values)
        return GraphFacts(facts, position, on_cpu, problem.rules)


def _kind(value: Value, copied: frozenset[str]) -> Kind:
    if value.name in copied:
        # A copy is a loop with a buffer of its own, like a reduction's.
        return REDUCTION
    return value.kind if value.kind in _RUNS_A_KERNEL else VIEW


def _storage(value: Value, position: dict[str, int], copied: frozenset[str]) -> int:
    if value.name in copied:
        return position[value.name]
    return position[value.storage] if value.storage else -1


def _reads(graph: JointGraph, position: dict[str, int], storages: list[int]) -> list[tuple[Read, ...]]:
    numbers: dict[str, int] = {}
    maps: list[IndexMap] = []
    """How each value's elements map to its storage."""
    found: list[tuple[Read, ...]] = []
    for number, value in enumerate(graph.values):
        own: IndexMap = (numbers.setdefault(value.index_map, len(numbers)),) if value.index_map else ()
        sources = [position[name] for name in value.inputs]
        reads = [(storages[source], maps[source] + own) for source in sources if storages[source] >= 0]
        found.append(tuple(dict.fromkeys(reads)))
        # A view passes on where its elements are stored. Any other value has a storage of its own, in order.
        is_view = storages[number] not in (-1, number)
        through_view = [index_map for storage, index_map in reads if is_view and storage == storages[number]]
        maps.append(through_view[0] if through_view else ())
    return found


def _parts(graph: JointGraph, value: Value, position: dict[str, int]) -> tuple[int, ...]:
    if value.kind is PART:
        return ()
    return tuple(position[part.name] for part in graph.parts_of(value.name) if part.owns_bytes)


def _loop_sizes(graph: JointGraph, value: Value) -> LoopSizes:
    spec = value.spec
    if spec is None:
        return (0, 1)
    if value.kind is not REDUCTION:
        return (prod(spec.shape), 1)
    source = graph.by_name[value.inputs[0]].spec if value.inputs else None
    total = source.numel if source else spec.numel
    return (spec.numel, max(total // max(spec.numel, 1), 1))


def _is_always_realized(graph: JointGraph, value: Value) -> bool:
    readers = (graph.by_name[name] for name in graph.readers[value.name])
    return value.operator.startswith("prims.inductor_rand") or any(r.operator == _AS_STRIDED for r in readers)


def _realizes_inputs(value: Value) -> bool:
    """`needs_realized_inputs` of Inductor's lowering: every extern kernel but these two, and pooling."""
    if value.operator in ("aten.addmm.default", "aten.baddbmm.default"):
        return False
    return value.kind is EXTERN or "_pool2d" in value.operator


def _writes_into_part(value: Value) -> bool:
    if value.kind is EXTERN:
        return packet_of(value.operator) in MATMULS
    return value.kind in (POINTWISE, REDUCTION) and value.operator != _CONCATENATION


def _matmul_terms(graph: JointGraph, value: Value, position: dict[str, int]) -> tuple[int, ...]:
    if value.operator != ADDITION:
        return ()
    return tuple(position[name] for name in value.inputs if graph.by_name[name].operator == "aten.mm.default")
