"""Joint graphs small enough to draw, and random ones small enough to enumerate."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from autockpt.cost_models import TensorSpec
from autockpt.passes.forecast.result import Forecast
from autockpt.passes.forecast.simulator import Simulator
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.value import Kind, Role, Trait, Value
from autockpt.passes.problem.plan import Lowering, Plan, Problem
from autockpt.passes.problem.schedule import Scheduler

UNIT = 1000
"""Bytes of a value in these graphs, unless said otherwise."""


def value(
    name: str,
    *inputs: str,
    role: Role = Role.FORWARD,
    kind: Kind = Kind.EXTERN,
    nbytes: int = UNIT,
    storage: str | None = None,
    traits: Iterable[Trait] = (),
    operator: str = "aten.mm.default",
) -> Value:
    return Value(
        name=name,
        operator=operator,
        role=role,
        kind=kind,
        inputs=inputs,
        storage=name if storage is None else storage,
        spec=TensorSpec((nbytes,), "float32", 1),
        traits=frozenset(traits),
    )


def joint(values: Iterable[Value], forward_outputs: Iterable[str], backward_outputs: Iterable[str]) -> JointGraph:
    values = tuple(values)
    sizes = {v.name: v.spec.nbytes for v in values if v.owns_bytes and v.spec is not None}
    return JointGraph(values, sizes, tuple(forward_outputs), tuple(backward_outputs))


def chain(length: int, **traits: Iterable[Trait]) -> JointGraph:
    """x -> f0 -> f1 -> ... -> loss, and back: b_i reads the gradient after it and f_{i-1}, as a linear layer does."""
    values = [value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT)]
    previous = "x"
    for number in range(length):
        name = f"f{number}"
        values.append(value(name, previous, traits=traits.get(name, ())))
        previous = name
    values.append(value("loss", previous, nbytes=1))
    values.append(value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT, nbytes=1))
    gradient = "t"
    for number in reversed(range(length)):
        name = f"b{number}"
        values.append(value(name, gradient, f"f{number}", role=Role.BACKWARD))
        gradient = name
    return joint(values, ["loss"], [gradient])


def hills(count: int, operators: tuple[str, ...] = ("mm",)) -> JointGraph:
    """x -> stem -> n0 -> w0 -> n1 -> w1 -> ... -> loss, stem and the w wide and the n narrow, and back through both."""
    values = [
        value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT),
        value("stem", "x", nbytes=5 * UNIT),
        value("n0", "stem"),
    ]
    for number in range(count):
        operator = operators[number % len(operators)]
        values.append(value(f"w{number}", f"n{number}", nbytes=5 * UNIT, operator=f"aten.{operator}.default"))
        values.append(value(f"n{number + 1}", f"w{number}"))
    values.append(value("loss", f"n{count}", nbytes=1))
    gradient = "t"
    values.append(value(gradient, role=Role.TANGENT, kind=Kind.GRAPH_INPUT, nbytes=1))
    for number in reversed(range(count)):
        values.append(value(f"bw{number}", gradient, f"w{number}", role=Role.BACKWARD))
        values.append(value(f"bn{number}", f"bw{number}", f"n{number}", role=Role.BACKWARD))
        gradient = f"bn{number}"
    return joint(values, ["loss"], [gradient])


def problem(
    graph: JointGraph,
    seconds: Mapping[str, float] | None = None,
    must_save: Mapping[str, str] | None = None,
    lowering: Lowering = Lowering.EAGER,
) -> Problem:
    return Problem(
        graph=graph,
        seconds={v.name: 0.0 if v.role.is_graph_input else 1.0 for v in graph.values} | dict(seconds or {}),
        must_save=must_save or {},
        lowering=lowering,
    )


def random_problem(seed: int, max_values: int = 7) -> Problem:
    """Forward values with up to two inputs each, all of them needed for the loss, most of them for the backward."""
    dice = random.Random(seed)
    count = dice.randint(2, max_values)
    values = [value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT, nbytes=dice.randint(1, 9) * UNIT)]
    for number in range(count):
        known = [v.name for v in values]
        inputs = {known[-1], dice.choice(known)} if dice.random() < 0.6 else {dice.choice(known)}
        values.append(value(f"f{number}", *sorted(inputs), nbytes=dice.randint(1, 9) * UNIT))
    forward = [v.name for v in values[1:]]
    read = {name for v in values for name in v.inputs}
    values.append(value("loss", *(name for name in forward if name not in read), nbytes=1))
    values.append(value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT, nbytes=1))
    gradient = "t"
    for number in reversed(range(count)):
        reads = [f"f{number}"] if dice.random() < 0.8 or number == count - 1 else []
        values.append(value(f"b{number}", gradient, *reads, role=Role.BACKWARD, nbytes=dice.randint(1, 9) * UNIT))
        gradient = f"b{number}"
    graph = joint(values, ["loss"], [gradient])
    seconds = {name: float(dice.randint(1, 9)) for name in forward}
    must_save = {name: "for the test" for name in forward if dice.random() < 0.1}
    return problem(graph, seconds, must_save)


def schedule(graph: JointGraph, saved: Iterable[str], order: Sequence[str]) -> Plan:
    """The plan that saves these values and recomputes the rest just in time, each once."""
    return Scheduler(graph, order)(saved)


def forecast(problem: Problem, plan: Plan) -> Forecast:
    return Simulator(problem).forecast(plan)
