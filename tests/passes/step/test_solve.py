"""The step problem against brute force, its variants, its bounds, its range."""

from __future__ import annotations

from dataclasses import replace

import pytest
from step_problems import every_choice, least_peak, least_seconds, random_step

from autockpt.passes.problem import Budget, Outcome
from autockpt.passes.step import (
    BoundPoint,
    Pass,
    PlanOption,
    PlanTable,
    StepCall,
    StepProblem,
    bound_seconds,
    calls_from_passes,
    resolve_budget,
    solve,
    solve_min_peak,
    step_range,
)

SAVE = PlanOption(saved_bytes=10, forward_bytes=11, backward_bytes=14, seconds=1.0)
RECOMPUTE = PlanOption(saved_bytes=1, forward_bytes=5, backward_bytes=15, seconds=1.5)
BLOCK = PlanTable.of([SAVE, RECOMPUTE])


def chain(tables: dict[str, PlanTable], graphs: list[str], budget_bytes: int, outside_bytes: int = 0) -> StepProblem:
    """Forwards in order, backwards in reverse."""
    forwards = [Pass(number, False, outside_bytes) for number in range(len(graphs))]
    backwards = [Pass(number, True, outside_bytes) for number in reversed(range(len(graphs)))]
    return StepProblem(tables, calls_from_passes(graphs, [*forwards, *backwards]), budget_bytes)


@pytest.mark.parametrize("seed", range(120))
def test_the_plan_is_the_fastest_of_all_choices_that_fit(seed: int) -> None:
    problem = random_step(seed)
    best, plan = least_seconds(problem), solve(problem)

    assert plan.proven
    if best is None:
        assert plan.outcome is Outcome.OVER_BUDGET
        assert plan.peak_bytes == least_peak(problem) > problem.budget_bytes
    else:
        assert plan.outcome is not Outcome.OVER_BUDGET
        assert plan.peak_bytes <= problem.budget_bytes
        assert plan.seconds == pytest.approx(best)
        assert plan.table_bound_seconds == pytest.approx(best)
    assert plan.choices in set(every_choice(problem))


@pytest.mark.parametrize("seed", range(60))
def test_many_calls_of_one_graph_are_solved_exactly(seed: int) -> None:
    problem = random_step(seed, calls=7, graphs=1, options=5)
    best, plan = least_seconds(problem), solve(problem)

    assert plan.proven
    assert (best is None) == (plan.outcome is Outcome.OVER_BUDGET)
    assert best is None or plan.seconds == pytest.approx(best)


@pytest.mark.parametrize("seed", range(40))
def test_a_larger_budget_is_never_slower(seed: int) -> None:
    problem = random_step(seed, calls=7, graphs=2, options=6)
    found = step_range(problem)
    low, high = found.min_peak_bytes, found.fastest_bytes

    seconds = [solve(problem.at(low + (high - low) * step // 6)).seconds for step in range(7)]

    assert seconds == sorted(seconds, reverse=True)


@pytest.mark.parametrize("seed", range(40))
def test_the_minimum_peak_is_that_of_brute_force_and_fits_as_a_budget(seed: int) -> None:
    problem = random_step(seed)
    lowest = solve_min_peak(problem)

    assert lowest.peak_bytes == least_peak(problem)
    assert solve(problem.at(lowest.peak_bytes)).outcome is not Outcome.OVER_BUDGET
    assert solve(problem.at(lowest.peak_bytes - 1)).outcome is Outcome.OVER_BUDGET


def test_three_calls_get_at_most_two_variants() -> None:
    """Outside bytes leave each of three calls another option as its fastest."""
    options = [PlanOption(nbytes, nbytes, nbytes, seconds) for nbytes, seconds in ((9, 1.0), (6, 2.0), (3, 4.0))]
    calls = tuple(StepCall("block", nbytes, nbytes) for nbytes in (1, 4, 7))
    problem = StepProblem({"block": PlanTable.of(options)}, calls, 10)

    plan, free = solve(problem), solve(replace(problem, max_variants=3))

    assert free.choices == (0, 1, 2)
    assert len(plan.variants("block")) == 2
    assert plan.seconds == least_seconds(problem) == 2.0 + 2.0 + 4.0


def test_eight_blocks_pay_for_a_saved_byte_as_often_as_it_is_in_flight() -> None:
    problem = chain({"block": BLOCK}, ["block"] * 8, budget_bytes=60, outside_bytes=10)

    plan = solve(problem)

    assert plan.outcome is Outcome.FITS
    assert plan.peak_bytes <= 60
    assert plan.seconds == least_seconds(problem)
    assert len(plan.variants("block")) == 2
    assert sum(map(len, plan.variants("block").values())) == 8


def test_equal_micro_batches_get_equal_plans_and_are_posed_once() -> None:
    """Four micro-batches of two blocks, each done before the next begins."""
    passes, graphs = [], []
    for first in range(0, 8, 2):
        graphs += ["block", "block"]
        passes += [Pass(first, False, 5), Pass(first + 1, False, 5), Pass(first + 1, True, 5), Pass(first, True, 5)]
    problem = StepProblem({"block": BLOCK}, calls_from_passes(graphs, passes), 23)

    plan = solve(problem)

    assert plan.choices == plan.choices[:2] * 4
    assert plan.seconds == least_seconds(problem)


def test_a_step_that_fits_at_full_speed_is_fastest() -> None:
    plan = solve(chain({"block": BLOCK}, ["block"] * 3, budget_bytes=1000))

    assert plan.outcome is Outcome.FASTEST
    assert plan.gap.of_step == 0.0


def test_held_outputs_count_once() -> None:
    """An output that both the graph saves and the next one holds is in the outside bytes of the passes between."""
    option = PlanOption(saved_bytes=4, forward_bytes=10, backward_bytes=12, seconds=1.0, saved_output_bytes=3)
    passes = [Pass(0, False, 0), Pass(1, False, 3), Pass(1, True, 3), Pass(0, True, 0)]
    calls = calls_from_passes(["a", "a"], passes)
    held = calls_from_passes(["a", "a"], passes, held=[0])
    tables = {"a": PlanTable.of([option])}

    assert StepProblem(tables, calls, 0).peaks((0, 0))[1].forward_bytes == 3 + 7 + 10
    assert StepProblem(tables, held, 0).peaks((0, 0))[1].forward_bytes == 3 + 4 + 10


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_for_every_plan_is_not_above_the_plan(seed: int) -> None:
    problem = random_step(seed)
    best = least_seconds(problem)

    assert best is None or bound_seconds(problem) <= best + 1e-6


def test_a_hull_below_the_options_lowers_the_bound() -> None:
    table = replace(BLOCK, bound=(BoundPoint(10, 1.0), BoundPoint(0, 1.1)))
    plain, lower = (chain({"block": one}, ["block"] * 8, 50) for one in (BLOCK, table))

    assert bound_seconds(lower) < bound_seconds(plain) <= solve(plain).seconds
    assert solve(lower).gap.bound_seconds < solve(plain).gap.bound_seconds


def test_a_fraction_is_a_position_in_the_range_of_the_step() -> None:
    problem = chain({"block": BLOCK}, ["block"] * 8, 0)
    found = step_range(problem)

    assert resolve_budget(Budget(fraction=0.0), problem) == found.min_peak_bytes == least_peak(problem)
    assert resolve_budget(Budget(fraction=1.0), problem) == found.fastest_bytes
    assert found.min_peak_bytes < resolve_budget(Budget(fraction=0.3), problem) < found.fastest_bytes
    assert solve(problem.at(found.min_peak_bytes)).outcome is Outcome.FITS


def test_a_call_without_backward_is_never_in_flight() -> None:
    calls = calls_from_passes(["a", "a"], [Pass(0, False, 1), Pass(1, False, 1), Pass(1, True, 1)])

    assert calls[1].in_flight_forward == calls[1].in_flight_backward == ()
    assert calls[0].backward_outside_bytes is None


def test_an_unknown_graph_is_refused() -> None:
    with pytest.raises(ValueError, match="no table"):
        StepProblem({}, (StepCall("a", 0, 0),), 10)
