"""Copies that Inductor makes on the CPU because its convolutions run channels-last."""

from __future__ import annotations

from math import prod

from autockpt.passes.joint import JointGraph, Kind, Value
from autockpt.passes.plan import Lowering

_WRITTEN = (Kind.EXTERN, Kind.REDUCTION)


def copied_bytes(graph: JointGraph, lowering: Lowering) -> int:
    """Bytes of weights and inputs that are copied for the forward and passed on to the backward, and of one activation.

    Counted as live through the whole step, which is a little more than true.
    """
    if lowering is Lowering.EAGER:
        return 0
    operands = {
        name: graph.by_name[name]
        for value in graph.values
        if value.operator.startswith("aten.convolution.") and value.device == "cpu"
        for name in (value.operands or value.inputs)[:2]
    }
    changing = [operand for operand in operands.values() if _changes(operand)]
    standing = sum(graph.bytes_of(operand.name) for operand in changing if operand.role.is_given)
    # Loops write channels-last at once; what another kernel wrote, a concatenation say, is copied when it is read.
    passing = (graph.bytes_of(o.name) for o in changing if o.kind in _WRITTEN and "convolution" not in o.operator)
    return standing + max(passing, default=0)


def _changes(value: Value) -> bool:
    """Whether channels-last is another order: not where the spatial dimensions are all one."""
    return value.spec is not None and prod(value.spec.shape[2:]) > 1
