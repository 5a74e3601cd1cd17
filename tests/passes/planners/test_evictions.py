"""Ways down: at the peak something goes, and comes back when it is read."""

from __future__ import annotations

from itertools import pairwise
from math import inf

from graphs import chain, problem
from random_instances import sketch

from autockpt.passes.forecast.simulator import Simulator
from autockpt.passes.instances.to_plan import write_plan
from autockpt.passes.planners.evictions import Evictor
from autockpt.passes.planners.frontier import Frontier
from autockpt.passes.planners.schedule import schedule, traced_order
from autockpt.passes.problem.verify import verify


def test_every_plan_of_a_way_runs_and_has_the_peak_it_says(seeds: range) -> None:
    for seed in seeds:
        asked = sketch(seed).problem
        simulator = Simulator(asked)
        for plan, peak_bytes in Evictor(asked, simulator)(Frontier(asked).fastest.plan, steps=12):
            verify(asked, plan)
            assert Simulator(asked).peak_bytes(plan) == peak_bytes


def test_a_way_from_everything_kept_leads_below_what_one_recomputation_each_can_reach() -> None:
    """A chain of 16 with one recomputation each holds 9 or more; thinned and rebuilt twice it holds fewer."""
    asked = problem(chain(16))
    start = schedule(asked.graph, [f"f{n}" for n in range(16)], traced_order(asked.graph))
    way = list(Evictor(asked, Simulator(asked))(start, steps=60))
    lowest, peak_bytes = min(way, key=lambda step: step[1])
    assert peak_bytes < 0.5 * Simulator(asked).peak_bytes(start)
    assert len(set(lowest.backward)) < len(lowest.backward)


def test_a_way_is_walked_only_as_far_as_asked_and_gets_slower() -> None:
    frontier = Frontier(problem(chain(20)))
    way = frontier._ways[0]
    high = frontier.peak_bytes(frontier.fastest)
    first = way.first_within(high - 1, inf)
    assert first is not None
    assert way.candidates == [first]
    assert way.first_within(0, inf) is None
    assert all(one.recompute_seconds <= other.recompute_seconds for one, other in pairwise(way.candidates))
    assert way.first_within(high - 1, inf) is first


def test_what_nobody_reads_does_not_run() -> None:
    """Made again before its result was read: the first of the two is of no use."""
    asked = problem(chain(4))
    plan = write_plan(asked, ["b3", "f2", "f1", "f2", "b2", "b1", "b0"])
    assert plan.backward == ("b3", "f1", "f2", "b2", "b1", "b0")
    assert plan.saved == {"f0", "f3"}
