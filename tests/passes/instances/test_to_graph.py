"""The graph of an instance has the instance's plans: same bytes, same seconds, same order."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from random_instances import random_instance

from autockpt.passes.forecast.simulator import Simulator
from autockpt.passes.graph.order import backward_orders
from autockpt.passes.instances.from_graph import instance_of
from autockpt.passes.instances.instance import Instance, Recomputations, extra_seconds, peak_bytes
from autockpt.passes.instances.to_graph import graph_of, plan_of, recomputations_of
from autockpt.passes.problem.must_save import find_must_save
from autockpt.passes.problem.plan import Lowering, Problem
from autockpt.passes.problem.verify import verify


def problem_of(instance: Instance) -> Problem:
    graph, seconds = graph_of(instance)
    return Problem(graph, seconds, find_must_save(graph, Lowering.EAGER), Lowering.EAGER)


def random_plans(instance: Instance, seed: int) -> list[Recomputations]:
    """The second of two equal recomputations in a row would be of no use, so each stage has distinct values."""
    dice = Random(seed)
    free = [v for v in range(instance.boundary) if not instance.runs_once[v]]
    plans = [instance.save_everything]
    for _ in range(5):
        plans.append(tuple(tuple(sorted(dice.sample(free, dice.randint(0, len(free))))) for _ in plans[0]))
    return plans


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_has_the_peak_and_the_seconds_of_the_instance(seed: int) -> None:
    instance = random_instance(seed)
    problem = problem_of(instance)
    (order,) = backward_orders(problem.graph)
    posed, naming = instance_of(problem, order)
    operations = {names[0]: number for number, names in enumerate(naming.names) if names}
    simulator = Simulator(problem)
    for recomputed in random_plans(instance, seed):
        renumbered = tuple(tuple(operations[f"f{v}"] for v in before) for before in recomputed)
        plan = plan_of(problem, naming, renumbered[: posed.count - posed.boundary])
        verify(problem, plan)
        found = recomputations_of(instance, plan)
        assert simulator.peak_bytes(plan) == peak_bytes(instance, found)
        assert simulator.recompute_seconds(plan) == pytest.approx(extra_seconds(instance, found))
        assert found == recomputed


def test_the_backward_keeps_its_order_and_all_of_its_operations() -> None:
    # b3 computes what nothing reads; a graph could leave it out, or run b4 first.
    instance = Instance.of([1] * 5, [4] * 5, [(), (0,), (0, 1), (0,), (2,)], boundary=2)
    graph, _ = graph_of(instance)
    assert backward_orders(graph) == [("b2", "b3", "b4")]


def test_an_instance_with_workspaces_has_no_graph() -> None:
    instance = replace(random_instance(0), workspace=np.ones(10, dtype=np.int64))
    with pytest.raises(ValueError, match="workspaces"):
        graph_of(instance)
