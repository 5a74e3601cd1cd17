"""Seconds of a pass as kernels, on a device whose rates are round and graphs whose kernels can be counted."""

from __future__ import annotations

from dataclasses import replace

from graphs import chain, forecast, joint, problem, schedule, value

from autockpt.cost_models import DeviceProfile
from autockpt.passes.forecast.clock import Family
from autockpt.passes.forecast.result import Forecast
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.order import traced_order
from autockpt.passes.graph.value import Kind, Role
from autockpt.passes.problem.plan import Lowering

LAUNCH = 0.5
DEVICE = DeviceProfile(
    name="round",
    source="made up",
    kind="cpu",
    memory_bytes=0,
    matrix_flops_per_second={"float32": 1e9},
    vector_flops_per_second=1000.0,
    random_numbers_per_second=1.0,
    bytes_per_second=1000.0,
    launch_seconds=LAUNCH,
    host_bytes_per_second=1.0,
)


def forecast_on_device(graph: JointGraph, saved: set[str]) -> Forecast:
    posed = replace(problem(graph, lowering=Lowering.INDUCTOR), device=DEVICE)
    return forecast(posed, schedule(graph, saved, traced_order(graph)))


def pointwise(name: str, *inputs: str, role: Role = Role.FORWARD, operator: str = "aten.mul.Tensor") -> object:
    return value(name, *inputs, role=role, kind=Kind.POINTWISE, operator=operator)


def test_without_a_device_a_step_takes_the_sum_of_its_operations() -> None:
    graph = chain(3)
    plan = schedule(graph, {"f0"}, traced_order(graph))
    # Three layers and the loss forward, three gradients, and f1 and f2 once more.
    assert forecast(problem(graph), plan).step_seconds == 4 + 3 + 2


def test_a_loop_takes_its_traffic_or_its_arithmetic_and_one_launch() -> None:
    # x (1000 elements of a byte) -> twice -> thrice -> loss: one loop that reads x and writes what it returns.
    values = [
        value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT),
        pointwise("twice", "x"),
        pointwise("thrice", "twice"),
        value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT),
        pointwise("g", "t", "x", role=Role.BACKWARD),
    ]
    found = forecast_on_device(joint(values, ["thrice"], ["g"]), set())  # type: ignore[arg-type]  # values, all of them
    # Two operations of 1000 elements take 2 s, two buffers of 1000 bytes too.
    assert sum(found.forward_times.values()) == 2.0 + LAUNCH
    # One operation takes 1 s, but t, x and g are 3000 bytes.
    assert sum(found.backward_times.values()) == 3.0 + LAUNCH


def test_recomputing_inside_a_loop_that_runs_anyway_costs_the_added_arithmetic() -> None:
    values = [
        value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT),
        pointwise("a", "x"),
        pointwise("y", "a"),
        value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT),
        pointwise("g", "t", "a", role=Role.BACKWARD),
    ]
    graph = joint(values, ["y"], ["g"])  # type: ignore[arg-type]  # values, all of them
    saved, recomputed = forecast_on_device(graph, {"a"}), forecast_on_device(graph, set())
    # Saved, `a` is written by the forward. Recomputed, it is two operations over three buffers.
    assert sum(saved.forward_times.values()) - sum(recomputed.forward_times.values()) == 1.0
    assert sum(recomputed.backward_times.values()) == sum(saved.backward_times.values()) == 3.0 + LAUNCH


def test_times_are_split_by_family_of_kernel() -> None:
    found = forecast_on_device(chain(2), {"f0", "f1"})
    assert set(found.forward_times) == set(Family)
    # Two layers and the loss, all of them matmuls, a second each.
    assert found.forward_times[Family.MATMUL] == 3.0
