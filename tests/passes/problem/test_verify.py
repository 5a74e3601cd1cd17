"""The faults for which a plan is refused."""

from __future__ import annotations

import pytest
from graphs import chain, problem

from autockpt.passes.graph.value import Trait
from autockpt.passes.problem.plan import Plan
from autockpt.passes.problem.verify import BrokenPlan, verify

GOOD = ("f1", "b1", "b0")


@pytest.mark.parametrize(
    ("saved", "backward", "words"),
    [
        ({"f0"}, ("b1", "f1", "b0"), "before it is available"),
        (set(), GOOD, "before it is available"),
        ({"f0"}, ("f1", "b1"), "never computed"),
        ({"f0", "b1"}, GOOD, "not a forward value"),
        ({"f0"}, ("f1", "b1", "b0", "b0"), "runs twice"),
        ({"f0"}, ("f1", "loss", "b1", "b0"), "must-save"),
        ({"f0", "f1"}, ("b1", "b0"), "may not be"),
    ],
)
def test_a_broken_plan_is_refused(saved: set[str], backward: tuple[str, ...], words: str) -> None:
    posed = problem(chain(2, f1=[Trait.MUST_RECOMPUTE]), must_save={"loss": "for the test"})
    verify(posed, Plan(frozenset({"f0"}), GOOD))
    with pytest.raises(BrokenPlan, match=words):
        verify(posed, Plan(frozenset(saved), backward))


def test_recomputing_a_value_twice_is_allowed() -> None:
    verify(problem(chain(3)), Plan(frozenset({"f0"}), ("f1", "f2", "b2", "f1", "b1", "b0")))
