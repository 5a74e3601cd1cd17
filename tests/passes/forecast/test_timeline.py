"""The timeline of a plan, against the forecast that it must add up to."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from graphs import UNIT, chain, problem, random_problem, schedule
from torch import nn
from traced import joint_of, read_joint

from autockpt.cost_models import load_profile
from autockpt.passes.forecast.result import Content
from autockpt.passes.forecast.simulator import Simulator
from autockpt.passes.forecast.timeline import build_timeline
from autockpt.passes.graph.order import traced_order
from autockpt.passes.planners.decide import decide
from autockpt.passes.problem.plan import Budget, Offload, Plan, Problem, Setup
from autockpt.passes.problem.schedule import plans_saving


def adds_up(posed: Problem, plan: Plan) -> None:
    simulator = Simulator(posed)
    timeline = build_timeline(simulator, plan)
    expected = [live for replayed in simulator.passes(plan) for live in replayed.live_bytes()]
    assert [sum(live.values()) for live in timeline.live()] == expected
    assert sum(launch.seconds for launch in timeline.launches) == pytest.approx(simulator.step_seconds(plan))


def test_the_allocations_of_every_launch_add_up_to_the_forecast_of_random_plans(seeds: range) -> None:
    for seed in seeds:
        posed = random_problem(seed)
        for saved in ((), posed.graph.backward_reads):
            for plan in plans_saving(posed, saved):
                adds_up(posed, plan)


def test_a_saved_value_is_one_allocation_through_both_passes() -> None:
    graph = chain(2)
    plan = schedule(graph, {"f0"}, traced_order(graph))
    timeline = build_timeline(Simulator(problem(graph)), plan)
    named = {allocation.name: allocation for allocation in timeline.allocations if allocation.nbytes}
    # f0 f1 loss | f1 b1 b0
    assert [launch.operation for launch in timeline.launches] == ["f0", "f1", "loss", "f1", "b1", "b0"]
    assert [launch.recomputes for launch in timeline.launches] == [False, False, False, True, False, False]
    assert (named["f0"].content, named["f0"].first_launch, named["f0"].last_launch) == (Content.SAVED, 0, 5)
    assert [(b.content, b.first_launch, b.last_launch) for b in timeline.allocations if b.name == "f1"] == [
        (Content.TEMPORARY, 1, 2),
        (Content.RECOMPUTED, 3, 4),
    ]
    assert (named["loss"].last_launch, named["t"].first_launch) == (5, 3)


@pytest.mark.parametrize("fraction", [0.0, 0.5, 1.0])
def test_fused_loops_and_writes_in_place_add_up_too(fraction: float) -> None:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)) for _ in range(4)))
    graph = read_joint(*joint_of(model, torch.randn(64, 32)))
    decision = decide(graph, Setup(Budget(fraction=fraction), load_profile("cpu")))
    adds_up(decision.problem, decision.plan)


def test_copies_and_waits_are_on_the_clock_of_the_step() -> None:
    """x f0 f1 f2 loss | b2 b1 b0: f0 is away from behind f1 until before b1; each copy takes ten operations."""
    device = replace(
        load_profile("cpu"),
        launch_seconds=0.0,
        fresh_above_bytes=0,
        device_to_host_bytes_per_second=UNIT / 10,
        host_to_device_bytes_per_second=UNIT / 10,
        copy_latency_seconds=0.0,
    )
    posed = replace(problem(chain(3)), device=device, host_bytes=2**40)
    plan = Plan(frozenset({"f0", "f1", "f2"}), ("b2", "b1", "b0"), (Offload("f0", "f1", 1),))
    simulator = Simulator(posed)
    timeline = build_timeline(simulator, plan)
    expected = [live for replayed in simulator.passes(plan) for live in replayed.live_bytes()]
    assert [sum(live.values()) for live in timeline.live()] == expected
    out, back = timeline.copies
    assert (out.name, out.to_host, back.name, back.to_host) == ("f0", True, "f0", False)
    starts = {launch.operation: launch.start_seconds for launch in timeline.launches}
    ends = {launch.operation: launch.start_seconds + launch.seconds for launch in timeline.launches}
    assert out.start_seconds == pytest.approx(ends["f0"])
    assert starts["f2"] == pytest.approx(out.end_seconds) == pytest.approx(ends["f0"] + 10.0)
    assert back.start_seconds == pytest.approx(starts["b1"])
    assert starts["b0"] == pytest.approx(back.end_seconds)
    assert ends["b0"] == pytest.approx(simulator.step_seconds(plan))
