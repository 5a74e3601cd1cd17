"""Copies that Inductor makes on the CPU because its convolutions run channels-last."""

from __future__ import annotations

from math import prod

from autockpt.passes.joint import JointGraph, Kind, Value
from autockpt.passes.plan import Lowering

_CONVOLUTION = "aten.convolution"
_RESHAPES = ("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default")


def copied_bytes(graph: JointGraph, lowering: Lowering) -> int:
    """Bytes of weights and inputs that are copied for the forward and passed on to the backward.

    Counted as live through the whole step, which is a little more than true. Loops write channels-last at once.
    """
    if lowering is Lowering.EAGER:
        return 0
    operands = {
        name: graph.by_name[name]
        for value in graph.values
        if value.operator.startswith("aten.convolution.") and value.device == "cpu"
        for name in (value.operands or value.inputs)[:2]
    }
    return sum(graph.bytes_of(o.name) for o in operands.values() if o.role.is_given and _changes(o))


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
