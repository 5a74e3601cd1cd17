"""Copies that Inductor makes on the CPU because its convolutions run channels-last."""

from __future__ import annotations

from math import prod

from autockpt.passes.joint import JointGraph, Value
from autockpt.passes.plan import Lowering


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


def _changes(value: Value) -> bool:
    """Whether channels-last is another order: not where the spatial dimensions are all one."""
    return value.spec is not None and prod(value.spec.shape[2:]) > 1
