"""Each further plan of a graph is made for larger sizes than it was called with."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import sympy

from autockpt.passes.sizes import VARIANTS, Sizes, grown, headroom

S, T = sympy.symbols("s t", integer=True, positive=True)


def area(sizes: Sizes) -> float:
    return float(sizes[S] * sizes[T])


def test_the_first_plan_is_for_the_call_and_the_last_for_all_that_fits() -> None:
    growths = [headroom(variant) for variant in range(VARIANTS - 1)]
    assert growths[0] == 1.0
    assert growths[-1] == inf
    assert all(one < other for one, other in pairwise(growths))


def test_sizes_grow_in_proportion() -> None:
    found = grown({S: 10, T: 100}, 4.0, area, lambda _: True)
    assert found[S] in (20, 21)
    assert found[T] in (200, 201)


def test_sizes_grow_to_what_is_allowed() -> None:
    assert grown({S: 16, T: 16}, 1.5, area, lambda sizes: sizes[S] % 8 == 0) == {S: 24, T: 24}
    assert grown({S: 16, T: 16}, 1.5, area, lambda _: False) == {S: 16, T: 16}
    assert grown({S: 16, T: 16}, 1.0, area, lambda _: True) == {S: 16, T: 16}
