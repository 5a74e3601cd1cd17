"""What may not be computed again, and what happens to a plan that does it all the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from graphs import chain, joint, problem, value

from autockpt.passes.graph.joint import JointGraph, Kind, Role, Trait
from autockpt.passes.problem.must_save import find_must_save
from autockpt.passes.problem.plan import Lowering, Plan
from autockpt.passes.problem.verify import BrokenPlan, verify


def on(device: str, trait: Trait) -> JointGraph:
    moved = replace(value("f", traits=[trait]), device=device)
    return JointGraph((moved,), {"f": 1}, ("f",), ())


@pytest.mark.parametrize(
    ("trait", "words"),
    [
        (Trait.RANDOM, "draw again"),
        (Trait.SEED, "seed"),
        (Trait.MUTATES, "only once"),
        (Trait.STALE, "new value"),
        (Trait.COLLECTIVE, "rank"),
        (Trait.EFFECT, "side effect"),
        (Trait.OPAQUE, "higher-order"),
        (Trait.MUST_SAVE, "MUST_SAVE"),
    ],
)
def test_every_reason_is_said_in_words(trait: Trait, words: str) -> None:
    assert words in find_must_save(on("cpu", trait), Lowering.INDUCTOR)["f"]


def test_numbers_from_a_kept_seed_may_be_drawn_again_only_by_the_cpu_kernels_of_inductor() -> None:
    assert not find_must_save(on("cpu", Trait.SEEDED), Lowering.INDUCTOR)
    assert "other numbers" in find_must_save(on("cuda", Trait.SEEDED), Lowering.INDUCTOR)["f"]
    assert find_must_save(on("cpu", Trait.SEEDED), Lowering.EAGER)


GOOD = ("f1", "b1", "b0")


@pytest.mark.parametrize(
    ("saved", "backward", "words"),
    [
        ({"f0"}, ("b1", "f1", "b0"), "before it is at hand"),
        (set(), GOOD, "before it is at hand"),
        ({"f0"}, ("f1", "b1"), "never computed"),
        ({"f0", "b1"}, GOOD, "no forward value"),
        ({"f0"}, ("f1", "b1", "b0", "b0"), "runs twice"),
        ({"f0"}, ("f1", "loss", "b1", "b0"), "must_save"),
        ({"f0", "f1"}, ("b1", "b0"), "may not be"),
    ],
)
def test_a_broken_plan_is_refused(saved: set[str], backward: tuple[str, ...], words: str) -> None:
    asked = problem(chain(2, f1=[Trait.MUST_RECOMPUTE]), must_save={"loss": "for the test"})
    verify(asked, Plan(frozenset({"f0"}), GOOD))
    with pytest.raises(BrokenPlan, match=words):
        verify(asked, Plan(frozenset(saved), backward))


def test_recomputing_a_value_twice_is_allowed() -> None:
    verify(problem(chain(3)), Plan(frozenset({"f0"}), ("f1", "f2", "b2", "f1", "b1", "b0")))


def running(operator: str) -> JointGraph:
    given = value("x", role=Role.INPUT, kind=Kind.GRAPH_INPUT)
    return joint([given, value("s", "x", operator=operator)], ["s"], [])


@pytest.mark.parametrize("operator", ["aten.sum.dim_IntList", "aten.mean.dim", "aten.var_mean.correction"])
def test_a_sum_is_added_up_once_where_loops_are_fused(operator: str) -> None:
    assert "another order" in find_must_save(running(operator), Lowering.INDUCTOR)["s"]
    assert "s" not in find_must_save(running(operator), Lowering.EAGER)


def test_a_maximum_is_the_same_in_any_order() -> None:
    assert "s" not in find_must_save(running("aten.amax.default"), Lowering.INDUCTOR)
