"""Copies that Inductor makes because its convolutions run channels-last: on the CPU always, on a GPU where it likes."""

from __future__ import annotations

from math import prod

from autockpt.passes.graph import JointGraph, Kind, Value
from autockpt.passes.problem.plan import Lowering

_CONVOLUTION = "aten.convolution"
_NODES_EACH = 300
_SMALL = 64
"""Channels, up to which a GPU's convolutions stay as they are."""
_RESHAPES = ("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default")


def copied_bytes(graph: JointGraph, lowering: Lowering) -> int:
    """Bytes of weights and inputs that are copied for the forward and passed on to the backward.

    Counted as live through the whole step, which is a little more than true. Loops write channels-last at once.
    """
    if lowering is Lowering.EAGER or not _lays_out(graph):
        return 0
    operands = {operand.name: operand for value in _convolutions(graph) for operand in _operands(graph, value)}
    return sum(graph.bytes_of(o.name) for o in operands.values() if o.role.is_graph_input and _changes(o))


def _lays_out(graph: JointGraph) -> bool:
    """torch._inductor.graph.GraphLowering.decide_layout_opt: what it found faster on a GPU, and the CPU's always."""
    convolutions = _convolutions(graph)
    if all(value.device == "cpu" for value in convolutions):
        return bool(convolutions)
    if len(graph.required_forward) >= _NODES_EACH * len(convolutions):
        return False
    shapes = [_shapes(graph, value) for value in convolutions]
    grouped = any(channels > within > 1 for channels, _, within, _ in shapes)
    narrowing = any(2 * out <= within and kernel > 1 for _, out, within, kernel in shapes)
    small = all(out <= _SMALL and within <= _SMALL for _, out, within, _ in shapes)
    return not (grouped or narrowing or small)


def _convolutions(graph: JointGraph) -> list[Value]:
    return [value for value in graph.values if value.operator.startswith("aten.convolution.")]


def _operands(graph: JointGraph, convolution: Value) -> list[Value]:
    """What it is of, and its weight."""
    return [graph.by_name[name] for name in (convolution.operands or convolution.inputs)[:2]]


def _shapes(graph: JointGraph, convolution: Value) -> tuple[int, int, int, int]:
    """Channels in and out, those in that one of a group reads, and the kernel's height."""
    image, weight = (operand.spec.shape if operand.spec else (0, 0, 0) for operand in _operands(graph, convolution))
    return int(image[1]), int(weight[0]), int(weight[1]), int(weight[2])


def copied_views(graph: JointGraph) -> frozenset[str]:
    """Views that a convolution reads and that a loop wrote in another shape: copied once, for all who read them."""
    return frozenset(
        value.name
        for value in graph.values
        if value.kind is Kind.VIEW
        and value.device == "cpu"
        and value.operator in _RESHAPES
        and _changes(value)
        and graph.by_name[value.storage].kind in (Kind.POINTWISE, Kind.REDUCTION)
        and any(graph.by_name[reader].operator.startswith(_CONVOLUTION) for reader in graph.readers[value.name])
    )


def is_channels_last(graph: JointGraph, value: Value) -> bool:
    """Whether it is the result of a convolution, or of the backward of one."""
    made_by = graph.by_name[value.inputs[0]] if value.kind is Kind.PART else value
    return value.device == "cpu" and made_by.operator.startswith(_CONVOLUTION) and _changes(value)


def is_gathered(graph: JointGraph, value: Value) -> bool:
    """Whether it is what a convolution's backward reads and indexing made: an upsampled image."""
    readers = (graph.by_name[reader].operator for reader in graph.readers[value.name])
    indexed = value.operator in ("aten._unsafe_index.Tensor", "aten.index.Tensor")
    return indexed and _changes(value) and any(reader.startswith(f"{_CONVOLUTION}_backward") for reader in readers)


def is_reshaped(graph: JointGraph, value: Value) -> bool:
    readers = (graph.by_name[reader] for reader in graph.readers[value.name])
    return _changes(value) and any(r.kind is Kind.VIEW and r.operator in _RESHAPES for r in readers)


def _changes(value: Value) -> bool:
    """Whether channels-last is another order: not where the spatial dimensions are all one."""
    return value.spec is not None and len(value.spec.shape) > 3 and prod(value.spec.shape[2:]) > 1
