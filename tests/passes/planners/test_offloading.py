"""Save, recompute or offload: the default planner against every choice there is on small graphs with a link."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

from graphs import UNIT, random_problem

from autockpt.cost_models import load_profile
from autockpt.passes.forecast import Simulator
from autockpt.passes.planners.frontier import Frontier
from autockpt.passes.problem import (
    Offload,
    Plan,
    Problem,
    first_backward_uses,
    forward_order,
    last_forward_uses,
    may_offload,
    plans_saving,
    verify,
)

LINK = replace(
    load_profile("cpu"),
    launch_seconds=0.0,
    fresh_above_bytes=0,
    device_to_host_bytes_per_second=3.0 * UNIT,
    host_to_device_bytes_per_second=3.0 * UNIT,
    copy_latency_seconds=0.0,
)


def every_plan(posed: Problem) -> Iterator[Plan]:
    """Every saved set with recomputation just in time, and of each every set of copies at every possible moment."""
    names = [value.name for value in posed.graph.values if value.name.startswith("f")]
    sets = (chosen for count in range(len(names) + 1) for chosen in combinations(names, count))
    for plan in {plan: None for chosen in sets for plan in plans_saving(posed, chosen)}:
        yield from with_copies(posed, plan)


def with_copies(posed: Problem, plan: Plan) -> Iterator[Plan]:
    order = forward_order(posed, plan)
    last = last_forward_uses(posed.graph, {name: number for number, name in enumerate(order)})
    first = first_backward_uses(posed.graph, plan)
    choices: list[list[tuple[Offload, ...]]] = [
        [
            (),
            *(
                (Offload(name, order[released], reloaded),)
                for released in range(last[name], len(order))
                for reloaded in range(first[name] + 1)
            ),
        ]
        for name in sorted(plan.saved)
        if name in first and may_offload(posed, name)
    ]
    for chosen in product(*choices):
        yield replace(plan, offloaded=tuple(offload for one in chosen for offload in one))


def test_the_default_planner_is_near_the_best_of_every_plan_with_a_link(seeds: range) -> None:
    ratios, offloading = [], 0
    for seed in seeds:
        posed = replace(random_problem(seed, max_values=3), device=LINK, host_bytes=2**40)
        simulator, frontier = Simulator(posed), Frontier(posed)
        known = [(simulator.step_seconds(plan), simulator.peak_bytes(plan), plan) for plan in every_plan(posed)]
        low = min(peak_bytes for _, peak_bytes, _ in known)
        high = min(known, key=lambda one: one[:2])[1]
        for share in (0.2, 0.5, 0.8):
            budget_bytes = low + int((high - low) * share)
            best = min((one for one in known if one[1] <= budget_bytes), key=lambda one: one[:2])
            found = frontier.within(budget_bytes)
            assert found is not None, "a plan that fits is missed"
            verify(posed, found.plan)
            assert found.peak_bytes <= budget_bytes
            ratios.append(found.seconds / best[0])
            offloading += bool(best[2].offloaded)
    assert sum(ratios) / len(ratios) <= 1.03
    assert offloading >= len(seeds) // 2
