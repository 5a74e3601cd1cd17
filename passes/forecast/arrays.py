"""The joint graph as integers and arrays, for the loops that run thousands of times."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from autockpt.passes.graph import MATMULS, JointGraph, Kind, Value, is_heavy, packet_of
from autockpt.passes.problem import Lowering, Problem, copied_views, is_channels_last, is_gathered, is_reshaped

VIEW, POINTWISE, REDUCTION, EXTERN, PART = range(5)
_CODES = {
    Kind.POINTWISE: POINTWISE,
    Kind.REDUCTION: REDUCTION,
    Kind.EXTERN: EXTERN,
    Kind.PART: PART,
}


_AS_STRIDED = "aten.as_strided.default"

Path = tuple[int, ...]
"""The bends, slices and the like, between a storage and who reads it; empty where elements stay in place."""


@dataclass(frozen=True, slots=True)
class GraphArrays:
    """Parallel lists, one entry a value; a value is its position in the graph."""

    names: list[str]
    index: dict[str, int]
    code: list[int]
    owner: list[int]
    """Whose bytes; -1 without bytes."""
    nbytes: list[int]
    """Of the storage that a value owns; 0 for all others."""
    reads: list[tuple[tuple[int, Path], ...]]
    """The owners that a value's kernel reads, each once for every way that leads to its elements."""
    absorbs: list[tuple[int, ...]]
    """The matmuls that a sum may be merged with, the likeliest first."""
    movable: list[bool]
    """Written to wherever one likes: by a loop or a matmul."""
    direct: list[frozenset[int]]
    """The owners that a value reads as they are, not through a view."""
    users: list[tuple[int, ...]]
    """The values that are computed from a value."""
    views: list[tuple[int, ...]]
    """The views of a value's storage."""
    hints: list[bool]
    """Whether what it reads, a value or a view, is written to memory as soon as it is known if others read it too."""
    written: list[bool]
    """Never a formula: a random number, and what is read by strides."""
    concatenates: list[bool]
    parent: list[int]
    """The operation that a PART belongs to; else -1."""
    heavy: list[bool]
    domain: list[tuple[int, int]]
    """Loop sizes: elements out, elements reduced into each."""
    convolution: list[bool]
    gathered: list[bool]
    """Whether an activation was taken by index: written in the order of its dimensions, whatever it was taken from."""
    channels_last: list[bool]
    """What convolutions write."""
    reshaped: list[bool]
    """What is read in another shape, and so is written in the order of its dimensions."""
    scratch: list[int]
    on_cpu: bool


def index(problem: Problem) -> GraphArrays:
    graph = problem.graph
    position = {value.name: number for number, value in enumerate(graph.values)}
    copied = copied_views(graph) if problem.lowering is Lowering.INDUCTOR else frozenset()
    owner = [_owner(value, position, copied) for value in graph.values]
    workspace = problem.workspace or {}
    return GraphArrays(
        names=[value.name for value in graph.values],
        index=position,
        code=[REDUCTION if v.name in copied else _CODES.get(v.kind, VIEW) for v in graph.values],
        owner=owner,
        nbytes=[graph.bytes_of(v.name) if v.owns_bytes or v.name in copied else 0 for v in graph.values],
        reads=_reads(graph, position, owner),
        absorbs=[_absorbs(graph, value, position) for value in graph.values],
        movable=[_is_movable(value) for value in graph.values],
        direct=[_direct(graph, value, position) for value in graph.values],
        users=[tuple(position[name] for name in graph.readers[value.name]) for value in graph.values],
        views=_views(owner),
        hints=[_hints(value) for value in graph.values],
        written=[_is_written(graph, value) for value in graph.values],
        concatenates=[value.operator == "aten.cat.default" for value in graph.values],
        parent=[position[value.inputs[0]] if value.kind is Kind.PART else -1 for value in graph.values],
        heavy=[is_heavy(value.operator) for value in graph.values],
        domain=[_domain(graph, value) for value in graph.values],
        convolution=[value.operator == "aten.convolution.default" for value in graph.values],
        gathered=[is_gathered(graph, value) for value in graph.values],
        channels_last=[is_channels_last(graph, value) for value in graph.values],
        reshaped=[is_reshaped(graph, value) for value in graph.values],
        scratch=[workspace.get(value.name, 0) for value in graph.values],
        on_cpu=all(value.device == "cpu" for value in graph.values),
    )


def _owner(value: Value, position: dict[str, int], copied: frozenset[str]) -> int:
    if value.name in copied:
        return position[value.name]
    return position[value.storage] if value.storage else -1


def _absorbs(graph: JointGraph, value: Value, position: dict[str, int]) -> tuple[int, ...]:
    """Inductor turns the sum of a matmul and anything into one matmul that adds: gradients of a shared weight."""
    if value.operator != "aten.add.Tensor":
        return ()
    return tuple(position[name] for name in value.inputs if graph.by_name[name].operator == "aten.mm.default")


def _is_movable(value: Value) -> bool:
    if value.kind is Kind.EXTERN:
        return packet_of(value.operator) in MATMULS
    return value.kind in (Kind.POINTWISE, Kind.REDUCTION) and value.operator != "aten.cat.default"


def _views(owner: list[int]) -> list[tuple[int, ...]]:
    views: list[list[int]] = [[] for _ in owner]
    for number, base in enumerate(owner):
        if base not in (-1, number):
            views[base].append(number)
    return [tuple(found) for found in views]


def _hints(value: Value) -> bool:
    """torch._inductor.lowering.needs_realized_inputs: every extern kernel but these two, and pooling."""
    if value.operator in ("aten.addmm.default", "aten.baddbmm.default"):
        return False
    return value.kind is Kind.EXTERN or "_pool2d" in value.operator


def _is_written(graph: JointGraph, value: Value) -> bool:
    readers = (graph.by_name[name] for name in graph.readers[value.name])
    return value.operator.startswith("prims.inductor_rand") or any(r.operator == _AS_STRIDED for r in readers)


def _direct(graph: JointGraph, value: Value, position: dict[str, int]) -> frozenset[int]:
    return frozenset(position[name] for name in value.inputs if graph.by_name[name].owns_bytes)


def _reads(graph: JointGraph, position: dict[str, int], owner: list[int]) -> list[tuple[tuple[int, Path], ...]]:
    bends: dict[str, int] = {}
    paths: list[Path] = []
    reads = []
    for value in graph.values:
        own = (bends.setdefault(value.index_map, len(bends)),) if value.index_map else ()
        sources = [position[name] for name in value.inputs]
        ways = [(owner[source], paths[source] + own) for source in sources if owner[source] >= 0]
        reads.append(tuple(dict.fromkeys(ways)))
        # A view hands on where its elements come from; everything else has its elements in place.
        number = position[value.name]
        is_view = owner[number] not in (-1, number)
        paths.append(next((path for base, path in ways if base == owner[number]), ()) if is_view else ())
    return reads


def _domain(graph: JointGraph, value: Value) -> tuple[int, int]:
    spec = value.spec
    if spec is None:
        return (0, 1)
    if value.kind is not Kind.REDUCTION:
        return (prod(spec.shape), 1)
    source = graph.by_name[value.inputs[0]].spec if value.inputs else None
    total = source.numel if source else spec.numel
    return (spec.numel, max(total // max(spec.numel, 1), 1))
