"""Moving values to the host: against every choice there is on small graphs, and where it does not pay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import inf

import pytest
from graphs import UNIT, chain, problem, random_problem

from autockpt.cost_models import DeviceProfile, load_profile
from autockpt.passes.forecast import Simulator
from autockpt.passes.generators import Offloads, SaveEverything, SearchSpace
from autockpt.passes.planners.frontier import Frontier
from autockpt.passes.problem import (
    Offload,
    Plan,
    Problem,
    first_backward_uses,
    forward_order,
    last_forward_uses,
    may_offload,
    verify,
)

GRAPHS = 40


def linked(
    asked: Problem, bytes_per_second: float = 4.0 * UNIT, latency: float = 0.0, host_bytes: int = 2**40
) -> Problem:
    """With a link on which a value of one unit takes a quarter of the second that its operation takes."""
    return replace(asked, device=link(bytes_per_second, latency), host_bytes=host_bytes)


def link(bytes_per_second: float, latency: float) -> DeviceProfile:
    return replace(
        load_profile("cpu"),
        launch_seconds=0.0,
        fresh_above_bytes=0,
        device_to_host_bytes_per_second=bytes_per_second,
        host_to_device_bytes_per_second=bytes_per_second,
        copy_latency_seconds=latency,
    )


def everything_offloaded(asked: Problem, plan: Plan) -> Iterator[Plan]:
    """The plan with every set of copies at every possible moment."""
    order = forward_order(asked, plan)
    last = last_forward_uses(asked.graph, {name: number for number, name in enumerate(order)})
    first = first_backward_uses(asked.graph, plan)
    choices: list[list[Offload | None]] = []
    for name in sorted(plan.saved):
        found: list[Offload | None] = [None]
        if may_offload(asked, name) and name in first:
            found += [
                Offload(name, order[released], reloaded)
                for released in range(last[name], len(order))
                for reloaded in range(first[name] + 1)
            ]
        choices.append(found)
    for chosen in product(*choices):
        yield replace(plan, offloaded=tuple(offload for offload in chosen if offload))


def fastest(asked: Problem, plan: Plan, budget_bytes: int) -> float:
    simulator = Simulator(asked)
    plans = everything_offloaded(asked, plan)
    return min((simulator.step_seconds(p) for p in plans if simulator.peak_bytes(p) <= budget_bytes), default=inf)


def test_a_chain_goes_to_the_host_and_back_for_nothing() -> None:
    """Each copy takes a quarter of an operation: the whole step fits into what one operation needs, at no cost."""
    asked = linked(problem(chain(6)))
    space = SearchSpace(asked)
    start = SaveEverything(space).lowest()
    found = Offloads(space).within(start.peak_bytes - 2 * UNIT, inf)
    assert found is not None
    verify(asked, found.plan)
    assert found.exposed_seconds == 0.0
    assert found.seconds == pytest.approx(start.seconds)
    assert found.peak_bytes <= start.peak_bytes - 2 * UNIT


def test_the_forecast_is_that_of_a_plan_drawn_by_hand() -> None:
    """x f0 f1 f2 loss | b2 b1 b0: f0 is away from behind f1 until before b1, while f1 and f2 stay."""
    asked = linked(problem(chain(3)), bytes_per_second=UNIT / 10)
    graph = asked.graph
    plan = Plan(frozenset({"f0", "f1", "f2"}), ("b2", "b1", "b0"))
    away = replace(plan, offloaded=(Offload("f0", "f1", 1),))
    simulator = Simulator(asked)
    before = [replayed.live_bytes() for replayed in simulator.passes(plan)]
    after = [replayed.live_bytes() for replayed in simulator.passes(away)]
    assert [one - other for one, other in zip(before[0], after[0], strict=True)] == [0, 0, UNIT, UNIT]
    assert [one - other for one, other in zip(before[1], after[1], strict=True)] == [UNIT, 0, 0]
    # Ten seconds out from the end of f0, of which f1 covers one; ten in from before b1, which b1 covers one of.
    assert simulator.exposed_seconds(away) == pytest.approx(9.0 + 9.0)
    assert simulator.forecast(away).host_bytes == graph.bytes_of("f0")
    assert simulator.forecast(away).saved_bytes == 2 * UNIT


def test_moving_values_is_close_to_the_best_of_all_moments() -> None:
    """From one plan: every set of values at every moment, against the greedy choice."""
    ratios, missed, compared = [], 0, 0
    for seed in range(GRAPHS):
        asked = linked(random_problem(seed, max_values=3), bytes_per_second=3.0 * UNIT)
        space = SearchSpace(asked)
        start = SaveEverything(space).lowest()
        lowest = Offloads(space).lowest()
        if lowest is None or lowest.peak_bytes >= start.peak_bytes:
            continue
        for share in (0.2, 0.5, 0.8):
            budget_bytes = lowest.peak_bytes + int((start.peak_bytes - lowest.peak_bytes) * share)
            best = fastest(asked, start.plan, budget_bytes)
            found = Offloads(space).within(budget_bytes, inf)
            compared += 1
            if found is None:
                missed += best < inf
            elif best < inf:
                ratios.append(found.seconds / best)
    assert compared >= GRAPHS
    assert missed == 0
    assert sum(ratios) / len(ratios) <= 1.03


@pytest.mark.parametrize(
    "declined",
    [
        pytest.param(linked(problem(chain(6)), bytes_per_second=1e-3), id="slow link"),
        pytest.param(linked(problem(chain(6)), latency=1e6), id="small tensors"),
        pytest.param(linked(problem(chain(6)), host_bytes=0), id="not asked for"),
        pytest.param(replace(linked(problem(chain(6))), device=load_profile("cpu")), id="no link"),
    ],
)
def test_what_does_not_pay_is_not_offloaded(declined: Problem) -> None:
    frontier = Frontier(declined)
    budget_bytes = frontier.fastest.peak_bytes - UNIT
    found = frontier.within(budget_bytes)
    assert found is not None
    assert not found.plan.offloaded
    assert found == Frontier(replace(declined, host_bytes=0)).within(budget_bytes)


@pytest.mark.parametrize(
    ("declined", "sentence"),
    [
        (linked(problem(chain(6)), bytes_per_second=1e-3), "shorter than its two copies"),
        (linked(problem(chain(6)), bytes_per_second=UNIT / 3), "take longer than recomputing"),
        (linked(problem(chain(6)), latency=1e6), "more than half of a copy would be latency"),
        (replace(linked(problem(chain(6))), device=load_profile("cpu")), "no link to the host"),
    ],
)
def test_a_plan_says_why_nothing_is_offloaded(declined: Problem, sentence: str) -> None:
    space = SearchSpace(declined)
    assert sentence in Offloads(space).why_not(space.evaluator.saving(frozenset(), "lowest"))
    assert Offloads(space).why_not(space.fastest_cut) in (
        "the fastest plan fits without it",
        "the device profile has no link to the host",
    )


def test_nothing_is_offloaded_where_the_fastest_plan_fits() -> None:
    frontier = Frontier(linked(problem(chain(6))))
    found = frontier.within(frontier.fastest.peak_bytes)
    assert found is not None
    assert not found.plan.offloaded


def test_the_host_cap_bounds_what_is_moved() -> None:
    asked = linked(problem(chain(6)), host_bytes=2 * UNIT)
    lowest = Offloads(SearchSpace(asked)).lowest()
    assert lowest is not None
    assert 0 < lowest.host_bytes <= 2 * UNIT
