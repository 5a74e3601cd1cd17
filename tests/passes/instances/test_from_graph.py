"""A graph, its instance, and the plan of the instance's recomputations agree on bytes and seconds."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
import torch
from graphs import UNIT, joint, problem, random_problem, value
from random_instances import sketch
from traced import joint_of, read_joint

from autockpt.passes.forecast.simulator import Simulator
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.order import leaves_first, traced_order
from autockpt.passes.graph.value import Kind, Role, Trait, Value
from autockpt.passes.instances.astar import solve_exact
from autockpt.passes.instances.from_graph import instance_of
from autockpt.passes.instances.instance import Instance, Recomputations, extra_seconds, peak_bytes
from autockpt.passes.instances.to_graph import plan_of
from autockpt.passes.problem.must_save import find_must_save
from autockpt.passes.problem.plan import Lowering, Problem
from autockpt.passes.problem.verify import verify


def some_plans(instance: Instance, seed: int) -> Iterator[Recomputations]:
    """No recomputation, random recomputations, and the best for some budgets."""
    dice = random.Random(seed)
    free = [v for v in range(instance.boundary) if not instance.must_save[v]]
    yield instance.save_everything
    for _ in range(4):
        yield tuple(
            tuple(dice.sample(free, min(len(free), dice.choice([0, 0, 1, 2])))) for _ in instance.save_everything
        )
    if instance.boundary < 14:
        most = peak_bytes(instance, instance.save_everything)
        for budget in (most * 9 // 10, most * 3 // 4):
            if (recomputed := solve_exact(instance, budget)) is not None:
                yield recomputed


def excess(posed: Problem, order: tuple[str, ...], seed: int = 0) -> set[int]:
    """Bytes that the instance counts beyond the forecast, over some plans."""
    instance, naming = instance_of(posed, order)
    simulator = Simulator(posed)
    base = posed.static_bytes
    found = set()
    for recomputed in some_plans(instance, seed):
        plan = plan_of(posed, naming, recomputed)
        verify(posed, plan)
        found.add(peak_bytes(instance, recomputed) + base - simulator.peak_bytes(plan))
    return found


def test_instance_and_forecast_count_the_same_bytes(seeds: range) -> None:
    for seed in seeds:
        for posed in (sketch(seed).problem, random_problem(seed)):
            for order in (traced_order(posed.graph), leaves_first(posed.graph)):
                assert excess(posed, order, seed) == {0}, f"seed {seed}"


def test_instance_and_forecast_count_the_same_seconds(seeds: range) -> None:
    for seed in seeds:
        posed = sketch(seed).problem
        instance, naming = instance_of(posed, traced_order(posed.graph))
        for recomputed in some_plans(instance, seed):
            plan = plan_of(posed, naming, recomputed)
            assert Simulator(posed).recompute_seconds(plan) == pytest.approx(extra_seconds(instance, recomputed))


def test_the_instance_of_a_sketched_problem_is_the_sketch(seeds: range) -> None:
    for seed in seeds:
        sketched = sketch(seed)
        boundary = sketched.boundary
        instance, _ = instance_of(sketched.problem, traced_order(sketched.problem.graph))
        assert instance.boundary == boundary + 1  # The tangents are one more operation.
        assert instance.nbytes.tolist() == [
            *sketched.nbytes[: sketched.boundary],
            2,
            *sketched.nbytes[sketched.boundary :],
        ]


def framed(*values: Value, outputs: list[str], grads: list[str]) -> JointGraph:
    start = value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT)
    tangent = value("t", role=Role.TANGENT, kind=Kind.GRAPH_INPUT)
    return joint([start, tangent, *values], outputs, grads)


def test_a_view_is_taken_again_of_a_recomputed_storage() -> None:
    graph = framed(
        value("f", "x"),
        value("v", "f", kind=Kind.VIEW, storage="f"),
        value("loss", "v"),
        value("b1", "t", "v", role=Role.BACKWARD),
        value("b2", "b1", "v", role=Role.BACKWARD),
        outputs=["loss"],
        grads=["b2"],
    )
    posed = problem(graph)
    _, naming = instance_of(posed, traced_order(graph))
    assert naming.names == (("f",), ("loss",), (), ("b1",), ("b2",))
    saved, rebuilt = (plan_of(posed, naming, recomputed) for recomputed in (((), ()), ((), (0,))))
    assert (saved.saved, saved.backward) == ({"f"}, ("v", "b1", "b2"))
    assert (rebuilt.saved, rebuilt.backward) == ({"f"}, ("v", "b1", "f", "v", "b2"))
    assert excess(posed, traced_order(graph)) == {0}


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


def test_results_of_an_operation_that_may_be_recomputed_are_held_together() -> None:
    posed = dropout(must_save=False)
    _, naming = instance_of(posed, ("b1",))
    assert ("d", "out", "mask") in naming.names
    assert all(0 <= more <= 4 * UNIT for more in excess(posed, ("b1",)))


def test_what_cannot_be_saved_is_computed_in_the_backward() -> None:
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
    posed = problem(graph)
    _, naming = instance_of(posed, traced_order(graph))
    assert naming.names == (("f",), ("g",), ("loss",), (), ("g",), ("b1",), ("late",), ("b2",))
    assert excess(posed, traced_order(graph)) == {0}


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


def test_plans_of_a_traced_model_are_valid_and_never_need_more_than_their_instance() -> None:
    module, outputs, parameters = joint_of(torch.nn.Sequential(Block(), Block()), torch.randn(2, 8, 16))
    graph = read_joint(module, outputs, parameters)
    no_work = (Kind.GRAPH_INPUT, Kind.VIEW, Kind.PART, Kind.SYMBOL)
    seconds = {v.name: 0.0 if v.kind in no_work else 1.0 for v in graph.values}
    posed = Problem(graph, seconds, find_must_save(graph, Lowering.EAGER), Lowering.EAGER)
    for order in (traced_order(graph), leaves_first(graph)):
        assert min(excess(posed, order)) >= 0
