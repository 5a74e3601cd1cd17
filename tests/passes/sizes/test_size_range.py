"""Conditions on sizes, what they are called, and how far they reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from autockpt.passes.sizes import SizedBytes, SizeRange, range_of

S, T = sympy.symbols("s t", integer=True, positive=True)
NAMES = {S: "x.size(0)", T: "x.size(1)"}


def one_symbol(constant: float, factor: float) -> SizedBytes:
    return SizedBytes((sympy.Integer(1), S), np.array([[constant, factor]]), np.array([1.0, 10.0]))


def conditions(live: SizedBytes | None, limit: int, traced: int, planned: int, **others: Any) -> tuple[Any, ...]:
    return range_of(live, limit, {S: traced}, {S: planned}, others.pop("fixed", {}), lower=others.pop("lower", False))


def test_one_size_is_bounded_by_a_number() -> None:
    (condition,) = conditions(one_symbol(100, 10), 1000, 10, 10)
    assert condition in (sympy.Le(S, 89), sympy.Le(S, 90))


def test_a_plan_that_recomputes_leaves_small_sizes_to_a_faster_one() -> None:
    upper, lower = conditions(one_symbol(100, 10), 1000, 80, 80, lower=True)
    assert upper.rhs in (89, 90)
    assert lower == sympy.Ge(S, 46)


def test_live_bytes_that_are_not_known_bound_all_sizes_by_those_that_were_checked() -> None:
    found = range_of(None, 1000, {S: 4, T: 8}, {S: 6, T: 12}, {}, lower=True)
    assert set(found) == {sympy.Le(S, 6), sympy.Le(T, 12)}


def test_a_declared_size_is_not_narrowed() -> None:
    assert conditions(one_symbol(100, 10), 1000, 10, 50, fixed={S: 50}) == ()
    assert range_of(None, 1000, {S: 4, T: 8}, {S: 6, T: 12}, {S: 6}, lower=False) == (sympy.Le(T, 12),)


def test_a_range_says_what_it_holds_for() -> None:
    conditions = sympy.Le(S * T, 100, evaluate=False), sympy.Ge(S, 5)
    found = SizeRange({S: 10, T: 7}, {S: 12, T: 7}, NAMES, conditions, {}, {"u0": "9 (why)"})
    assert str(found) == "x.size(0) 5 to 14, x.size(1) up to 10, u0 up to 9 (why)"
    assert found.contains({S: 20, T: 5})
    assert not found.contains({S: 20, T: 6})
    assert found.to_json() == {
        "traced": {"x.size(0)": 10, "x.size(1)": 7},
        "planned": {"x.size(0)": 12, "x.size(1)": 7},
        "smallest": {"x.size(0)": 5, "x.size(1)": 1},
        "largest": {"x.size(0)": 14, "x.size(1)": 10},
        "conditions": ["x.size(0)*x.size(1) <= 100", "x.size(0) >= 5"],
        "data_dependent": {"u0": "9 (why)"},
    }


def test_without_conditions_any_size_will_do() -> None:
    assert str(SizeRange({S: 10}, {S: 10}, NAMES, ())) == "any x.size(0)"
    assert str(SizeRange({S: 10}, {S: 64}, NAMES, (), {S: 64})) == "x.size(0) up to 64"
