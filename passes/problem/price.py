"""Seconds per value: what it costs to compute it once more in the backward."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from autockpt.cost_models import DeviceProfile, TensorSpec, Work, seconds_of, work_of, workspace_bytes
from autockpt.cost_models.memory import cuda_workspace_bytes
from autockpt.cost_models.roofline import arithmetic_seconds
from autockpt.passes.graph import JointGraph, Kind, Value
from autockpt.passes.problem.plan import Lowering

Specs = tuple[TensorSpec, ...]


def price(
    graph: JointGraph, device: DeviceProfile, lowering: Lowering, measured: Mapping[str, float] | None = None
) -> Mapping[str, float]:
    """Seconds of every value, the backward's own operations included; those that somebody timed as they were timed."""
    priced = {value.name: _seconds(graph, value, device, lowering) for value in graph.values}
    return priced | dict(measured or {})


def _seconds(graph: JointGraph, value: Value, device: DeviceProfile, lowering: Lowering) -> float:
    if not value.kind.runs:
        return 0.0
    work = work_of_value(graph, value)
    if lowering is Lowering.EAGER or value.kind is not Kind.POINTWISE:
        return seconds_of(work, device)
    # Fused into what reads it, a pointwise operation adds its arithmetic; a kernel that cannot fuse it in needs it
    # written first.
    seconds = arithmetic_seconds(work, device)
    if graph.is_read_by(value.name, Kind.EXTERN):
        seconds += graph.bytes_of(value.name) / device.bytes_per_second + device.launch_seconds
    return seconds


def work_of_value(graph: JointGraph, value: Value) -> Work:
    if value.work is not None:
        return value.work
    inputs, outputs = specs_around(graph, value)
    elementwise = value.kind in (Kind.POINTWISE, Kind.REDUCTION)
    return _work(value.operator, inputs, outputs, elementwise)


@lru_cache(maxsize=2**14)
def _work(operator: str, inputs: Specs, outputs: Specs, elementwise: bool) -> Work:
    """Layers repeat, and so do the shapes of what they run."""
    return work_of(operator, inputs, outputs, elementwise=elementwise)


def specs_around(graph: JointGraph, value: Value) -> tuple[Specs, Specs]:
    inputs = [graph.by_name[name].spec for name in value.operands or value.inputs]
    parts = [graph.by_name[name] for name in graph.readers[value.name]]
    outputs = [part.spec for part in parts if part.kind is Kind.PART] or [value.spec]
    return tuple(s for s in inputs if s is not None), tuple(s for s in outputs if s is not None)


def find_workspaces(graph: JointGraph, threads: int) -> Mapping[str, int]:
    """Scratch bytes of every operation that has some."""
    running = (value for value in graph.values if value.kind is Kind.EXTERN and value.inputs)
    found = {value.name: _scratch(graph, value, threads) for value in running}
    return {name: scratch for name, scratch in found.items() if scratch}


def _scratch(graph: JointGraph, value: Value, threads: int) -> int:
    inputs, _ = specs_around(graph, value)
    if value.device != "cpu":
        return cuda_workspace_bytes(value.operator, inputs)
    first = graph.by_name[value.inputs[0]]
    merged = first.operator.startswith(("aten.permute.", "aten.transpose."))
    return workspace_bytes(value.operator, inputs, threads, heads_merged=merged)
