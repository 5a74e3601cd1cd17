"""Seconds and scratch bytes of every operation of a graph, from the cost models."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from autockpt.cost_models import DeviceProfile, TensorSpec, Work, seconds_of, work_of, workspace_bytes
from autockpt.cost_models.memory import cuda_workspace_bytes
from autockpt.cost_models.roofline import arithmetic_seconds, traffic_seconds
from autockpt.passes.graph import TRANSPOSES, JointGraph, Kind, Value, packet_of
from autockpt.passes.problem.plan import Lowering

Specs = tuple[TensorSpec, ...]


def price(
    graph: JointGraph, device: DeviceProfile, lowering: Lowering, measured: Mapping[str, float] | None = None
) -> Mapping[str, float]:
    """Seconds of one run of every value's operation, as `measured` where it says so."""
    priced = {value.name: _seconds(graph, value, device, lowering) for value in graph.values}
    return priced | dict(measured or {})


def _seconds(graph: JointGraph, value: Value, device: DeviceProfile, lowering: Lowering) -> float:
    if not value.kind.runs:
        return 0.0
    work = work_of_value(graph, value)
    if lowering is Lowering.EAGER or value.kind is not Kind.POINTWISE:
        return seconds_of(work, device)
    # Fused into its readers, a pointwise operation costs its arithmetic.
    seconds = arithmetic_seconds(work, device)
    if not graph.is_read_by(value.name, Kind.EXTERN):
        return seconds
    # For a reader that cannot fuse it is realized: by a loop that reads what it is computed from and writes it.
    moved = graph.bytes_of(value.name) + sum(graph.bytes_of(name) for name in _loop_inputs(graph, value))
    return max(seconds, traffic_seconds(moved, device)) + device.launch_seconds


def _loop_inputs(graph: JointGraph, value: Value) -> set[str]:
    """Storages that a loop reads to compute this value: those behind it through pointwise operations that fuse."""
    found: set[str] = set()
    seen = {value.name}
    stack = list(value.inputs)
    while stack:
        source = graph.by_name[stack.pop()]
        if source.name in seen:
            continue
        seen.add(source.name)
        fuses = source.kind is Kind.POINTWISE and not graph.is_read_by(source.name, Kind.EXTERN)
        if source.kind is Kind.VIEW or fuses:
            stack.extend(source.inputs)
        elif source.storage:
            found.add(source.storage)
    return found


def work_of_value(graph: JointGraph, value: Value) -> Work:
    """Arithmetic and traffic of a value's operation; sympy expressions where the graph's sizes are."""
    if value.work is not None:
        return value.work
    inputs, outputs = specs_of_call(graph, value)
    elementwise = value.kind in (Kind.POINTWISE, Kind.REDUCTION)
    return _cached_work(value.operator, inputs, outputs, elementwise)


@lru_cache(maxsize=2**14)
def _cached_work(operator: str, inputs: Specs, outputs: Specs, elementwise: bool) -> Work:
    """The layers of a model run the same operators on the same shapes."""
    return work_of(operator, inputs, outputs, elementwise=elementwise)


def specs_of_call(graph: JointGraph, value: Value) -> tuple[Specs, Specs]:
    """Shapes of the tensors that an operation reads and of those that it returns."""
    inputs = [graph.by_name[name].spec for name in value.operands or value.inputs]
    outputs = [part.spec for part in graph.parts_of(value.name)] or [value.spec]
    return tuple(s for s in inputs if s is not None), tuple(s for s in outputs if s is not None)


def find_workspaces(graph: JointGraph, threads: int) -> Mapping[str, int]:
    """Scratch bytes that an operation allocates and frees while it runs, of all operations that need some."""
    running = (value for value in graph.values if value.kind is Kind.EXTERN and value.inputs)
    found = {value.name: _scratch_bytes(graph, value, threads) for value in running}
    return {name: nbytes for name, nbytes in found.items() if nbytes}


def _scratch_bytes(graph: JointGraph, value: Value, threads: int) -> int:
    inputs, _ = specs_of_call(graph, value)
    if value.device != "cpu":
        return cuda_workspace_bytes(value.operator, inputs)
    first = graph.by_name[value.inputs[0]]
    heads_merged = packet_of(first.operator) in TRANSPOSES
    return workspace_bytes(value.operator, inputs, threads, heads_merged=heads_merged)
