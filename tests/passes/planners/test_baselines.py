"""What others would do: plans that are what their names say, verified and replayed like ours."""

from __future__ import annotations

import pytest
from graphs import chain, hills, joint, problem, random_problem, value
from hypothesis import given, settings
from hypothesis import strategies as st

from autockpt.passes.forecast.simulator import Simulator
from autockpt.passes.graph.value import Kind, Role, Trait
from autockpt.passes.planners.baselines import BASELINES, find_baselines, save_blocks, save_cut_points, square_root
from autockpt.passes.problem.plan import Plan, Problem
from autockpt.passes.problem.schedule import plans_saving
from autockpt.passes.problem.verify import verify


def saved(asked: Problem, name: str) -> frozenset[str]:
    return {found.name: found.plan.saved for found in find_baselines(asked)}[name]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_every_baseline_is_a_plan_that_can_run(seed: int) -> None:
    asked = random_problem(seed, max_values=12)
    for found in find_baselines(asked):
        verify(asked, found.plan)
        assert found.peak_bytes == Simulator(asked).peak_bytes(found.plan)


def test_who_keeps_everything_recomputes_nothing() -> None:
    everything = find_baselines(problem(hills(4)))[0]
    assert everything.recompute_seconds == 0.0
    assert everything.plan.saved == {f"{kind}{number}" for kind in "nw" for number in range(4)}


def test_who_recomputes_everything_keeps_what_is_pinned() -> None:
    asked = problem(hills(4), must_save={"w1": "random: would draw again"})
    assert saved(asked, "recompute everything") == {"w1"}


def test_a_cut_point_that_the_backward_has_no_use_for_is_not_saved() -> None:
    graph = hills(4)
    values = [v for v in graph.values if v.name not in ("bw0", "bn0")]
    short = joint(values, graph.forward_outputs, ["bn1"])
    (plan, *_) = save_cut_points(problem(short))
    assert plan.saved == {"n1", "n2", "n3"}


def test_a_block_with_a_cut_point_inside_is_one_block() -> None:
    (plan, *_) = save_blocks(problem(hills(6, operators=("attention", "mm"))))
    assert plan.saved == {"n1", "n3", "n5"}


def test_the_square_root_keeps_about_as_many_borders_as_blocks_lie_between_them() -> None:
    (plan, *_) = square_root(problem(hills(16)))
    assert plan.saved == {"n0", "n4", "n8", "n12"}


def test_a_segment_is_computed_again_as_a_whole() -> None:
    (plan, *_) = square_root(problem(hills(16)))
    first = plan.backward.index("bw7")
    assert plan.backward[first - 7 : first] == ("w4", "n5", "w5", "n6", "w6", "n7", "w7")


def test_a_view_that_somebody_saves_is_kept_as_its_base() -> None:
    graph = chain(4)
    view = value("v1", "f1", kind=Kind.VIEW, storage="f1", operator="aten.view.default")
    last = value("b", "b0", "v1", role=Role.BACKWARD)
    seen = joint([*graph.values, view, last], graph.forward_outputs, ["b"])
    assert next(plans_saving(problem(seen), {"v1"})).saved == {"f1"}


def test_what_may_not_be_kept_is_kept_as_what_it_is_made_from() -> None:
    asked = problem(chain(4, f2=[Trait.MUST_RECOMPUTE]))
    assert next(plans_saving(asked, {"f2"})).saved == {"f1"}


@pytest.mark.parametrize("name", BASELINES)
def test_a_network_without_cut_points_has_all_baselines_too(name: str) -> None:
    plans = list(BASELINES[name](problem(chain(1))))
    assert all(isinstance(plan, Plan) for plan in plans)
