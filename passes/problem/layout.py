"""Copies between memory layouts that Inductor adds because convolutions run channels-last: always on the CPU, on a GPU
where its heuristic expects a gain."""

from __future__ import annotations

from math import prod

from autockpt.passes.graph import (
    CONVOLUTION,
    CONVOLUTION_BACKWARD,
    INDEXING,
    RESHAPES,
    JointGraph,
    Kind,
    Value,
    packet_of,
)
from autockpt.passes.problem.plan import Lowering

_VALUES_PER_CONVOLUTION = 300
"""From this many forward values per convolution on, Inductor leaves a GPU's layouts alone."""
_FEW_CHANNELS = 64
"""Up to this many channels, Inductor leaves a GPU's convolutions alone."""


def copied_bytes(graph: JointGraph, lowering: Lowering) -> int:
    """Bytes of channels-last copies of weights and inputs, which the forward makes and the backward reads too.

    They are counted as live all through the step, slightly more than is true. Activations need no copy: the loop that
    computes them writes channels-last.
    """
    if lowering is Lowering.EAGER or not _runs_channels_last(graph):
        return 0
    operands = {operand.name: operand for value in _convolutions(graph) for operand in _operands(graph, value)}
    return sum(graph.bytes_of(o.name) for o in operands.values() if o.role.is_graph_input and _changes_order(o))


def _runs_channels_last(graph: JointGraph) -> bool:
    """As Inductor's `GraphLowering.decide_layout_opt` decides."""
    convolutions = _convolutions(graph)
    if all(value.device == "cpu" for value in convolutions):
        return bool(convolutions)
    if len(graph.required_forward) >= _VALUES_PER_CONVOLUTION * len(convolutions):
        return False
    shapes = [_channels(graph, value) for value in convolutions]
    grouped = any(channels > in_group > 1 for channels, _, in_group, _ in shapes)
    narrowing = any(2 * out <= in_group and kernel > 1 for _, out, in_group, kernel in shapes)
    small = all(out <= _FEW_CHANNELS and in_group <= _FEW_CHANNELS for _, out, in_group, _ in shapes)
    return not (grouped or narrowing or small)


def _convolutions(graph: JointGraph) -> list[Value]:
    return [value for value in graph.values if packet_of(value.operator) == CONVOLUTION]


def _operands(graph: JointGraph, convolution: Value) -> list[Value]:
    """Image and weight."""
    return [graph.by_name[name] for name in (convolution.operands or convolution.inputs)[:2]]


def _channels(graph: JointGraph, convolution: Value) -> tuple[int, int, int, int]:
    """Input channels, output channels, input channels of one group, kernel height."""
    image, weight = (operand.spec.shape if operand.spec else (0, 0, 0) for operand in _operands(graph, convolution))
    return int(image[1]), int(weight[0]), int(weight[1]), int(weight[2])


def copied_views(graph: JointGraph) -> frozenset[str]:
    """Reshaped results of loops that a convolution reads: copied to channels-last once, for all readers."""
    return frozenset(
        value.name
        for value in graph.values
        if value.kind is Kind.VIEW
        and value.device == "cpu"
        and value.operator in RESHAPES
        and _changes_order(value)
        and graph.by_name[value.storage].kind in (Kind.POINTWISE, Kind.REDUCTION)
        and any(_is_convolution(graph.by_name[reader]) for reader in graph.readers[value.name])
    )


def is_channels_last(graph: JointGraph, value: Value) -> bool:
    """Whether it is the result of a convolution on the CPU, or of the backward of one."""
    computed_by = graph.operation_of(value)
    return value.device == "cpu" and _is_convolution(computed_by) and _changes_order(value)


def is_gathered(graph: JointGraph, value: Value) -> bool:
    """Whether indexing computes it, as nearest-neighbour upsampling does, and a convolution's backward reads it."""
    readers = (graph.by_name[reader].operator for reader in graph.readers[value.name])
    indexed = packet_of(value.operator) in INDEXING
    return indexed and _changes_order(value) and any(packet_of(reader) == CONVOLUTION_BACKWARD for reader in readers)


def is_reshaped(graph: JointGraph, value: Value) -> bool:
    """Whether a reshape reads an image."""
    readers = (graph.by_name[reader] for reader in graph.readers[value.name])
    return _changes_order(value) and any(r.kind is Kind.VIEW and r.operator in RESHAPES for r in readers)


def _is_convolution(value: Value) -> bool:
    return packet_of(value.operator) in (CONVOLUTION, CONVOLUTION_BACKWARD)


def _changes_order(value: Value) -> bool:
    """Whether channels-last orders its elements differently: not if all spatial dimensions are one."""
    return value.spec is not None and len(value.spec.shape) > 3 and prod(value.spec.shape[2:]) > 1
