"""The builder of linear programs, and HiGHS on programs small enough to solve by hand."""

from __future__ import annotations

from math import inf
from random import Random

import numpy as np
import pytest

from autockpt.passes.intervals.highs import integer_bound, solve_duals, solve_integer, solve_linear
from autockpt.passes.intervals.linear import Constraints, LinearProgram


def covering(seed: int) -> LinearProgram:
    """Choose the cheapest items so that each of five demands is covered one and a half times."""
    dice = Random(seed)
    constraints = Constraints()
    for _ in range(5):
        items = sorted(dice.sample(range(8), 4))
        constraints.add(items, [1.0] * 4, low=1.5)
    return LinearProgram.of_shares(np.array([float(dice.randint(1, 9)) for _ in range(8)]), constraints)


def test_all_ways_to_add_constraints_give_the_same_lists() -> None:
    one, each, groups = Constraints(), Constraints(), Constraints()
    for items in ([0, 1], [2, 3]):
        one.add(items, [1.0, 2.0], high=4.0)
    each.add_each(np.array([[0, 1], [2, 3]]), [1.0, 2.0], high=4.0)
    order = np.array([1, 0, 0, 1])
    groups.add_groups(order, np.array([2, 0, 1, 3]), np.array([1.0, 1.0, 2.0, 2.0]), np.array([4.0, 4.0]))
    assert one == each == groups
    assert one.owners.tolist() == [0, 0, 1, 1]


def test_a_variable_is_added_to_chosen_constraints_only() -> None:
    constraints = Constraints()
    for item in range(3):
        constraints.add([item], [1.0], low=1.0)
    more = constraints.with_variable(9, 5.0, [0, 2])
    assert (more.lengths, more.variables) == ([2, 1, 2], [0, 9, 1, 2, 9])
    assert constraints.variables == [0, 1, 2]


@pytest.mark.parametrize("seed", range(10))
def test_bounds_are_ordered_and_hold(seed: int) -> None:
    program = covering(seed)
    relaxed, whole, duals = solve_linear(program), solve_integer(program, 10.0), solve_duals(program)
    assert relaxed is not None
    assert duals is not None
    assert whole.values is not None
    cost = float(program.cost @ np.round(whole.values))
    assert program.weak_bound(duals) == pytest.approx(relaxed.objective)
    assert relaxed.objective <= integer_bound(program, 100) + 1e-6 <= cost + 2e-6
    # Any duals give a bound, the solver's are only the best.
    dice = np.random.default_rng(seed)
    assert program.weak_bound(dice.random(5) * 10) <= relaxed.objective + 1e-6


@pytest.mark.parametrize("seed", range(10))
def test_fixing_by_reduced_costs_leaves_the_best_integer_solution(seed: int) -> None:
    program = covering(seed)
    relaxed, whole = solve_linear(program), solve_integer(program, 10.0)
    assert relaxed is not None
    fixed = solve_integer(program.fixed_by(relaxed, whole.bound + 1.0), 10.0)
    assert fixed.bound == pytest.approx(whole.bound)


def test_constraints_that_nothing_satisfies_have_no_solution_and_an_infinite_bound() -> None:
    constraints = Constraints()
    constraints.add([0], [1.0], low=2.0)
    program = LinearProgram.of_shares(np.ones(1), constraints)
    assert solve_linear(program) is None
    assert solve_integer(program, 10.0).values is None
    assert integer_bound(program, 10) == inf


def market_split(items: int, demands: int, seed: int) -> LinearProgram:
    """Equations over shares with large coefficients: no cut helps, only the search (Cornuejols and Dawande 1998)."""
    dice = Random(seed)
    constraints = Constraints()
    for _ in range(demands):
        weights = [float(dice.randint(1, 99)) for _ in range(items)]
        half = float(sum(weights) // 2)
        constraints.add(list(range(items)), weights, low=half, high=half)
    return LinearProgram.of_shares(np.ones(items), constraints)


def test_a_limit_of_nodes_ends_the_search_in_the_same_place_however_much_time_there_is() -> None:
    program = market_split(items=30, demands=4, seed=0)
    limited = [solve_integer(program, seconds, most_nodes=3) for seconds in (60.0, 600.0)]
    assert [one.timed_out for one in limited] == [False, False]
    assert not any(one.proven for one in limited)
    assert limited[0].bound == limited[1].bound
