"""What calls in flight have on the host together, against brute force."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from step_problems import every_choice, random_step

from autockpt.passes.problem import Outcome
from autockpt.passes.step import Pass, PlanOption, PlanTable, StepProblem, calls_from_passes, solve, solve_min_peak

SAVE = PlanOption(saved_bytes=10, forward_bytes=11, backward_bytes=14, seconds=1.0)
OFFLOAD = PlanOption(saved_bytes=2, forward_bytes=6, backward_bytes=14, seconds=1.1, host_bytes=8)
RECOMPUTE = PlanOption(saved_bytes=1, forward_bytes=5, backward_bytes=15, seconds=1.5)


def random_hosted_step(seed: int) -> StepProblem:
    """Some options hold part of what they save on the host, for a little time; the host is too small for all."""
    draw, problem = Random(seed), random_step(seed)
    tables = {}
    for name, table in problem.tables.items():
        options = list(table.options)
        for option in table.options:
            moved = draw.randint(0, option.saved_bytes)
            offloaded = replace(option, saved_bytes=option.saved_bytes - moved, host_bytes=moved)
            options.append(replace(offloaded, seconds=option.seconds + draw.choice((0.0, 0.05))))
        tables[name] = PlanTable.of(options)
    return replace(problem, tables=tables, host_bytes=draw.randint(0, 80))


@pytest.mark.parametrize("seed", range(80))
def test_the_plan_is_the_fastest_of_all_choices_that_fit_on_both(seed: int) -> None:
    problem = random_hosted_step(seed)
    fitting = [choices for choices in every_choice(problem) if problem.fits(choices)]
    plan = solve(problem)

    assert plan.proven
    assert plan.host_bytes <= problem.host_bytes
    assert (plan.outcome is Outcome.OVER_BUDGET) == (not fitting)
    if fitting:
        assert plan.peak_bytes <= problem.budget_bytes
        assert plan.seconds == pytest.approx(min(map(problem.seconds, fitting)))


@pytest.mark.parametrize("seed", range(40))
def test_the_minimum_peak_is_that_of_choices_which_the_host_has_room_for(seed: int) -> None:
    problem = random_hosted_step(seed)
    possible = [choices for choices in every_choice(problem) if problem.most_on_host(choices) <= problem.host_bytes]

    assert solve_min_peak(problem).peak_bytes == min(map(problem.peak_bytes, possible))


def test_the_host_bytes_of_all_calls_in_flight_count_together() -> None:
    """Eight blocks forward, then back: with room for three of them on the host, three offload."""
    forwards = [Pass(number, False, 0) for number in range(8)]
    backwards = [Pass(number, True, 0) for number in reversed(range(8))]
    calls = calls_from_passes(["block"] * 8, [*forwards, *backwards])
    problem = StepProblem({"block": PlanTable.of([SAVE, OFFLOAD, RECOMPUTE])}, calls, 60, host_bytes=3 * 8 + 5)

    plan, without = solve(problem), solve(replace(problem, host_bytes=2 * 8))

    assert plan.outcome is without.outcome is Outcome.FITS
    assert plan.host_bytes == 3 * 8
    assert sum(option == OFFLOAD for option in plan.options) == 3
    assert without.host_bytes <= 2 * 8
    assert without.seconds > plan.seconds


def test_calls_one_after_the_other_use_the_same_host_memory() -> None:
    passes = [Pass(number, in_backward, 60) for number in range(4) for in_backward in (False, True)]
    calls = calls_from_passes(["block"] * 4, passes)
    problem = StepProblem({"block": PlanTable.of([SAVE, OFFLOAD, RECOMPUTE])}, calls, 74, host_bytes=8)

    assert solve(replace(problem, budget_bytes=74)).seconds == pytest.approx(4.0)
    assert solve(replace(problem, budget_bytes=74)).host_bytes == 0
    assert problem.most_on_host((1, 1, 1, 1)) == 8
