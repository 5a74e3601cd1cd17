"""Constants are recomputed where they are read: under Inductor no plan saves one, and none stands in a plan's way."""

from __future__ import annotations

from dataclasses import replace

from graphs import hills, joint, problem, value

from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.value import Kind, Role
from autockpt.passes.problem.cut_points import savable_cut_points
from autockpt.passes.problem.plan import Lowering
from autockpt.passes.problem.schedule import plans_saving, savable_set


def with_constant(graph: JointGraph) -> JointGraph:
    """The graph with a zero that its first operation reads, and the last ones of forward and backward."""
    zero = value("zero", kind=Kind.POINTWISE, nbytes=1, operator="aten.full.default")
    forward = [v for v in graph.values if v.role is Role.FORWARD]
    backward = [v for v in graph.values if v.role is Role.BACKWARD]
    readers = {forward[0].name, forward[-1].name, backward[-1].name}
    inputs = [v for v in graph.values if v.role.is_graph_input and v.role is not Role.TANGENT]
    rest = [v for v in graph.values if v not in inputs]
    read = [replace(v, inputs=(*v.inputs, "zero")) if v.name in readers else v for v in rest]
    return joint([*inputs, zero, *read], graph.forward_outputs, graph.backward_outputs)


def test_no_plan_under_inductor_saves_a_constant() -> None:
    posed = problem(with_constant(hills(4)), lowering=Lowering.INDUCTOR)

    assert posed.constants == {"zero"}
    assert "zero" not in savable_set(posed, posed.graph.backward_reads)
    assert all("zero" in plan.backward for plan in plans_saving(posed, posed.graph.backward_reads))


def test_eager_mode_saves_constants_because_a_constant_is_a_kernel_there() -> None:
    posed = problem(with_constant(hills(4)), lowering=Lowering.EAGER)

    assert "zero" in savable_set(posed, posed.graph.backward_reads)


def test_a_constant_that_crosses_every_cut_point_hides_none() -> None:
    assert _crossings(with_constant(hills(6))) == _crossings(hills(6)) != []


def test_a_must_save_value_is_no_constant() -> None:
    reasons = {"zero": "random: would draw again"}
    posed = problem(with_constant(hills(4)), must_save=reasons, lowering=Lowering.INDUCTOR)

    assert posed.constants == set()


def _crossings(graph: JointGraph) -> list[frozenset[str]]:
    return [point.crossing for point in savable_cut_points(problem(graph, lowering=Lowering.INDUCTOR))]
