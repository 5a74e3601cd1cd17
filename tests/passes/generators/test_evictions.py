"""Eviction descent: at the peak something is dropped, and recomputed when it is read."""

from __future__ import annotations

from itertools import pairwise
from math import inf

from graphs import chain, problem, schedule
from random_instances import sketch

from autockpt.passes.forecast.simulator import Simulator
from autockpt.passes.generators.evictions import Descent, Evictions
from autockpt.passes.generators.evictor import Evictor
from autockpt.passes.generators.generator import Cuts
from autockpt.passes.generators.space import Effort, SearchSpace
from autockpt.passes.generators.two_level import TwoLevel
from autockpt.passes.graph.order import traced_order
from autockpt.passes.planners.frontier import Frontier
from autockpt.passes.problem.plan import Plan
from autockpt.passes.problem.plan_writer import PlanWriter
from autockpt.passes.problem.verify import verify


def test_every_plan_of_a_descent_runs_and_has_the_peak_it_says(seeds: range) -> None:
    for seed in seeds:
        posed = sketch(seed).problem
        simulator = Simulator(posed)
        for plan, peak_bytes in Evictor(posed, simulator, PlanWriter(posed))(Frontier(posed).fastest.plan, steps=12):
            verify(posed, plan)
            assert Simulator(posed).peak_bytes(plan) == peak_bytes


def test_a_descent_from_everything_saved_goes_below_what_one_recomputation_each_can_reach() -> None:
    """A chain of 16 with one recomputation each holds 9 or more; thinned and rebuilt twice it holds fewer."""
    posed = problem(chain(16))
    start = schedule(posed.graph, [f"f{n}" for n in range(16)], traced_order(posed.graph))
    descent = list(Evictor(posed, Simulator(posed), PlanWriter(posed))(start, steps=60))
    lowest, peak_bytes = min(descent, key=lambda step: step[1])
    assert peak_bytes < 0.5 * Simulator(posed).peak_bytes(start)
    assert len(set(lowest.backward)) < len(lowest.backward)


def test_a_descent_goes_only_as_far_as_needed_and_gets_slower() -> None:
    space = SearchSpace(problem(chain(20)))
    descent = Descent(space, space.fastest_cut.plan)
    high = space.fastest_cut.peak_bytes
    first = descent.within(high - 1, inf)
    assert first is not None
    assert descent.candidates == [first]
    assert descent.within(0, inf) is None
    assert len(descent.candidates) > 1
    assert all(one.recompute_seconds <= other.recompute_seconds for one, other in pairwise(descent.candidates))
    assert descent.within(high - 1, inf) is first


def test_a_descent_stops_where_it_cannot_beat_what_is_known() -> None:
    space = SearchSpace(problem(chain(20)))
    descent = Descent(space, space.fastest_cut.plan)
    assert descent.within(0, space.fastest_cut.seconds) is None
    assert len(descent.candidates) <= 1


def test_a_descent_stops_where_its_peak_will_not_get_below_that_of_another() -> None:
    """After one short step from everything saved, at that rate, a few more steps end far above the other's lowest."""
    space = SearchSpace(problem(chain(40)), Effort(eviction_steps=6))
    low = Descent(space, space.evaluator.saving(frozenset(f"f{n}" for n in range(0, 40, 7)), "spread").plan)
    alone, beside = (Descent(space, space.fastest_cut.plan, others) for others in ((), (low,)))
    assert alone.lowest is not None
    assert low.lowest is not None
    assert alone.lowest.peak_bytes > low.lowest.peak_bytes
    assert beside.lowest is not None
    assert len(beside.candidates) < len(alone.candidates)


def test_a_peak_that_is_the_lowest_is_found_again_as_a_budget(seeds: range) -> None:
    for seed in seeds:
        posed = sketch(seed).problem
        lowest = Evictions(SearchSpace(posed)).lowest()
        if lowest is not None:
            found = Evictions(SearchSpace(posed)).within(lowest.peak_bytes, inf)
            assert found is not None
            assert found.peak_bytes <= lowest.peak_bytes


def test_a_descent_starts_from_the_lowest_two_level_plan() -> None:
    """And so ends below the lowest of those, and below where the others end."""
    space = SearchSpace(problem(chain(60)))
    two_level, lowest = TwoLevel(space).lowest(), Evictions(space).lowest()
    assert two_level is not None
    assert lowest is not None
    assert lowest.peak_bytes < two_level.peak_bytes
    assert lowest.peak_bytes < min(Descent(space, plan).lowest.peak_bytes for plan in others_of(space))


def others_of(space: SearchSpace) -> list[Plan]:
    return [space.fastest_cut.plan, *(cut.plan for cut in Cuts(space).lowest_of(2))]


def test_what_nobody_reads_does_not_run() -> None:
    """Made again before its result was read: the first of the two is of no use."""
    posed = problem(chain(4))
    plan = PlanWriter(posed).write(["b3", "f2", "f1", "f2", "b2", "b1", "b0"])
    assert plan.backward == ("b3", "f1", "f2", "b2", "b1", "b0")
    assert plan.saved == {"f0", "f3"}
