"""A few samples of live bytes say what they are at all sizes."""

from __future__ import annotations

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from autockpt.passes.sizes import ONE, SizedBytes, Sizes, fit, sample_points, terms_of

S, T = sympy.symbols("s t", integer=True, positive=True)
HINTS = {S: 4, T: 32}


def everything(_: Sizes) -> bool:
    return True


def fitted(moments: list[sympy.Expr], hints: Sizes = HINTS) -> SizedBytes | None:
    """From samples of these live bytes."""
    terms = terms_of(moments)
    points = terms and sample_points(terms, hints, everything)
    assert terms
    assert points
    return fit(terms, points, [[int(moment.xreplace(sizes)) for moment in moments] for sizes in points])


def test_terms_are_what_byte_counts_are_sums_of() -> None:
    assert terms_of([4 * S * (T - 1) + 4 * S, 16 * S * T**2, sympy.Integer(7)]) == (1, S * T, S * T**2)


def test_too_many_terms_are_none() -> None:
    assert terms_of([S**power for power in range(1, 20)]) is None


def test_samples_are_multiples_of_the_hints_that_are_allowed() -> None:
    points = sample_points((sympy.Integer(1), S, T), HINTS, lambda sizes: sizes[S] <= 8)
    assert points
    assert {sizes[S] for sizes in points} == {4, 8}
    assert all(sizes[T] % 32 == 0 for sizes in points)


def test_terms_that_no_sample_tells_apart_are_none() -> None:
    assert sample_points((sympy.Integer(1), S, T), HINTS, lambda sizes: sizes[T] == 32) is None


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(*[st.integers(0, 10**6)] * 4), min_size=1, max_size=8),
    st.integers(2, 200),
    st.integers(2, 200),
)
def test_the_fitted_peak_is_the_peak_at_every_size(rows: list[tuple[int, ...]], s: int, t: int) -> None:
    terms = (sympy.Integer(1), S * T, S * T**2, S)
    moments = [sympy.Add(*(a * b for a, b in zip(row, terms, strict=True))) + S + S * T + S * T**2 for row in rows]
    live = fitted(moments)
    assert live is not None
    truth = max(int(moment.xreplace({S: s, T: t})) for moment in moments)
    assert abs(live.peak({S: s, T: t}) - truth) <= 1e-6 * truth + 1


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(*[st.integers(1, 10**4)] * 3), min_size=1, max_size=8), st.integers(2, 99), st.integers(2, 99)
)
def test_where_the_binding_moments_fit_all_moments_fit(rows: list[tuple[int, ...]], s: int, t: int) -> None:
    moments = [a + b * S * T + c * S for a, b, c in rows]
    live = fitted(moments)
    limit = 10**6
    assert live is not None
    binding = live.binding(limit)
    if binding is None:
        return
    if all(expression.xreplace({S: s, T: t}) <= ONE for expression in binding):
        assert max(int(moment.xreplace({S: s, T: t})) for moment in moments) <= limit


def test_moments_that_another_always_exceeds_do_not_bind() -> None:
    live = fitted([100 * S * T, 1000 + 50 * S * T, 99 * S * T])
    assert live is not None
    (binding,) = live.binding(10**6) or ()
    assert binding.xreplace({S: 100, T: 99}) <= ONE < binding.xreplace({S: 101, T: 100})


def test_bytes_that_no_combination_of_terms_explains_are_none() -> None:
    points = tuple({S: size} for size in (4, 8, 12, 16))
    assert fit((sympy.Integer(1), S), points, [[10], [20], [900], [40]]) is None


def test_samples_with_different_numbers_of_moments_are_none() -> None:
    points = tuple({S: size} for size in (4, 8))
    assert fit((sympy.Integer(1), S), points, [[10], [20, 30]]) is None


def test_sizes_that_dynamo_knows_to_be_equal_are_one_term() -> None:
    """Tokens and targets have sizes of their own, of which a model relates only the products."""
    u, v = sympy.symbols("u v", integer=True, positive=True)
    equal = [(S * T, u * v)]
    moments = [4 * S * T + 8 * u * (v - 1) + 8 * u, 16 * T + 4 * u * v]
    terms = terms_of(moments, equal)
    assert terms == (1, S * T, T)
    hints = {S: 4, T: 32, u: 4, v: 32}
    points = sample_points(terms, hints, lambda sizes: sizes[S] * sizes[T] == sizes[u] * sizes[v], equal)
    assert points
    live = fit(terms, points, [[int(moment.xreplace(sizes)) for moment in moments] for sizes in points])
    assert live is not None
    assert live.peak({S: 64, T: 7, u: 7, v: 64}) == pytest.approx(12 * 64 * 7)
    assert live.peak({S: 1, T: 7, u: 7, v: 1}) == pytest.approx(16 * 7 + 4 * 7)


def test_where_no_larger_size_is_allowed_smaller_ones_are_sampled() -> None:
    points = sample_points((sympy.Integer(1), S * T, T), HINTS, lambda sizes: sizes[S] * sizes[T] <= 4 * 32)
    assert points
    assert all(sizes[S] * sizes[T] <= 4 * 32 and min(sizes.values()) >= 1 for sizes in points)
