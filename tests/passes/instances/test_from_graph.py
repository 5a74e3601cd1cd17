"""A graph, the instance made of it, and the plan made of what the instance runs again: they agree on bytes and seconds."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
import torch
from graphs import UNIT, joint, problem, random_problem, value
from random_instances import sketch
from traced import joint_of

from autockpt.inductor.aot import read_joint
from autockpt.passes.forecast.simulator import Simulator
from autockpt.passes.graph.joint import JointGraph, Kind, Role, Trait, Value
from autockpt.passes.instances.astar import solve_exact
from autockpt.passes.instances.from_graph import instance_of
from autockpt.passes.instances.instance import Instance, Recomputations, extra_seconds, peak_bytes
from autockpt.passes.instances.to_plan import plan_of
from autockpt.passes.planners.schedule import leaves_first, traced_order
from autockpt.passes.problem.must_save import find_must_save
from autockpt.passes.problem.plan import Lowering, Problem
from autockpt.passes.problem.verify import verify


def some_plans(instance: Instance, seed: int) -> Iterator[Recomputations]:
    """Nothing again, anything again anywhere, and the best for some budgets."""
    dice = random.Random(seed)
    loose = [v for v in range(instance.boundary) if not instance.must_save[v]]
    yield instance.save_everything
    for _ in range(4):
        yield tuple(
            tuple(dice.sample(loose, min(len(loose), dice.choice([0, 0, 1, 2])))) for _ in instance.save_everything
        )
    if instance.boundary < 14:
        most = peak_bytes(instance, instance.save_everything)
        for budget in (most * 9 // 10, most * 3 // 4):
            if (again := solve_exact(instance, budget)) is not None:
                yield again


def excess(asked: Problem, order: tuple[str, ...], seed: int = 0) -> set[int]:
    """What the instance counts beyond the forecast, over some plans."""
    instance, naming = instance_of(asked, order)
    simulator = Simulator(asked)
    base = asked.static_bytes
    found = set()
    for again in some_plans(instance, seed):
        plan = plan_of(asked, naming, again)
        verify(asked, plan)
        found.add(peak_bytes(instance, again) + base - simulator.peak_bytes(plan))
    return found


def test_task_and_forecast_count_the_same_bytes(seeds: range) -> None:
    for seed in seeds:
        for asked in (sketch(seed).problem, random_problem(seed)):
            for order in (traced_order(asked.graph), leaves_first(asked.graph)):
                assert excess(asked, order, seed) == {0}, f"seed {seed}"


def test_task_and_forecast_count_the_same_seconds(seeds: range) -> None:
    for seed in seeds:
        asked = sketch(seed).problem
        instance, naming = instance_of(asked, traced_order(asked.graph))
        for again in some_plans(instance, seed):
            plan = plan_of(asked, naming, again)
            assert Simulator(asked).recompute_seconds(plan) == pytest.approx(extra_seconds(instance, again))


def test_the_way_there_and_back_gives_the_task_that_was_drawn(seeds: range) -> None:
    for seed in seeds:
        drawn = sketch(seed)
        instance, _ = instance_of(drawn.problem, traced_order(drawn.problem.graph))
        assert instance.boundary == drawn.boundary + 1  # The tangents are one more.
        assert instance.nbytes.tolist() == [*drawn.nbytes[: drawn.boundary], 2, *drawn.nbytes[drawn.boundary :]]


def framed(*values: Value, outputs: list[str], grads: list[str]) -> JointGraph:
    start = value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT)
    tangent = value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT)
    return joint([start, tangent, *values], outputs, grads)


def test_a_view_is_taken_anew_of_a_new_storage() -> None:
    graph = framed(
        value("f", "x"),
        value("v", "f", kind=Kind.VIEW, storage="f"),
        value("loss", "v"),
        value("b1", "t", "v", role=Role.BACKWARD),
        value("b2", "b1", "v", role=Role.BACKWARD),
        outputs=["loss"],
        grads=["b2"],
    )
    asked = problem(graph)
    _, naming = instance_of(asked, traced_order(graph))
    assert naming.names == (("f",), ("loss",), (), ("b1",), ("b2",))
    saved, remade = (plan_of(asked, naming, again) for again in (((), ()), ((), (0,))))
    assert (saved.saved, saved.backward) == ({"f"}, ("v", "b1", "b2"))
    assert (remade.saved, remade.backward) == ({"f"}, ("v", "b1", "f", "v", "b2"))
    assert excess(asked, traced_order(graph)) == {0}


def dropout(must_save: bool) -> Problem:
    graph = framed(
        value("d", "x", storage="", nbytes=0),
        value("out", "d", kind=Kind.PART, nbytes=4 * UNIT),
        value("mask", "d", kind=Kind.PART, nbytes=UNIT),
        value("loss", "out"),
        value("use", "mask", nbytes=UNIT),
        value("last", "loss", "use"),
        value("b1", "t", "mask", role=Role.BACKWARD),
        outputs=["last"],
        grads=["b1"],
    )
    return problem(graph, must_save=dict.fromkeys(["d", "out", "mask"], "random") if must_save else {})


def test_results_of_an_operation_that_runs_once_are_held_one_by_one() -> None:
    assert excess(dropout(must_save=True), ("b1",)) == {0}


def test_results_of_an_operation_that_may_run_again_are_held_together() -> None:
    asked = dropout(must_save=False)
    _, naming = instance_of(asked, ("b1",))
    assert ("d", "out", "mask") in naming.names
    assert all(0 <= more <= 4 * UNIT for more in excess(asked, ("b1",)))


def test_what_may_not_cross_is_made_in_the_backward() -> None:
    graph = framed(
        value("f", "x"),
        value("g", "f", traits=[Trait.MUST_RECOMPUTE]),
        value("loss", "g"),
        value("late", "f"),
        value("b1", "t", "g", role=Role.BACKWARD),
        value("b2", "b1", "late", role=Role.BACKWARD),
        outputs=["loss"],
        grads=["b2"],
    )
    asked = problem(graph)
    _, naming = instance_of(asked, traced_order(graph))
    assert naming.names == (("f",), ("g",), ("loss",), (), ("g",), ("b1",), ("late",), ("b2",))
    assert excess(asked, traced_order(graph)) == {0}


class Block(torch.nn.Module):
    """Views, operations with several results, a random one, and a residual."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.norm, self.inner = torch.nn.LayerNorm(width), torch.nn.Linear(width, 3 * width)
        self.outer, self.drop = torch.nn.Linear(width, width), torch.nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in self.inner(self.norm(x)).chunk(3, -1))
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return x + self.drop(torch.relu(self.outer(mixed.transpose(1, 2).flatten(2))))


def test_plans_of_a_traced_model_hold_and_never_need_more_than_their_task() -> None:
    module, outputs, parameters = joint_of(torch.nn.Sequential(Block(), Block()), torch.randn(2, 8, 16))
    graph = read_joint(module, outputs, parameters)
    free = (Kind.GRAPH_INPUT, Kind.VIEW, Kind.PART, Kind.SYMBOL)
    seconds = {v.name: 0.0 if v.kind in free else 1.0 for v in graph.values}
    asked = Problem(graph, seconds, find_must_save(graph, Lowering.EAGER), Lowering.EAGER)
    for order in (traced_order(graph), leaves_first(graph)):
        assert min(excess(asked, order)) >= 0
