"""A plan from a file: held to every promise that ours are, and never changed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from graphs import UNIT, random_problem, schedule
from plans import decision, layers, priced, setup

from autockpt.cost_models import load_profile
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.order import traced_order
from autockpt.passes.graph.value import Trait
from autockpt.passes.planners.decide import CompiledPeak
from autockpt.passes.planners.fixed import FROM_FILE, check_fixed, decide_fixed
from autockpt.passes.problem.plan import Budget, InductorRules, Outcome, Plan, Setup
from autockpt.passes.problem.verify import BrokenPlan

GRAPH = layers(4)
PLAN = schedule(GRAPH, {"f1"}, traced_order(GRAPH))


WIDE = Budget(total_bytes=10**6)


def test_a_plan_from_a_file_is_taken_as_it_is_and_priced_as_ours_are() -> None:
    decided = decide_fixed(GRAPH, PLAN, setup(WIDE))
    assert decided.plan == PLAN == decided.candidate.plan
    assert decided.candidate.method == FROM_FILE
    assert decided.outcome is Outcome.FITS
    assert decided.candidate.saved_bytes == UNIT
    assert decided.candidate.recompute_seconds == decided.forecast.recompute_seconds > 0


@pytest.mark.parametrize("fraction", [0.0, 0.5, 1.0])
def test_our_own_plans_come_back_with_the_forecast_they_had(seeds: range, fraction: float) -> None:
    for graph in (GRAPH, *(priced(random_problem(seed).graph) for seed in seeds)):
        made = decision(graph, fraction)
        decided = decide_fixed(graph, made.plan, setup(Budget(fraction=fraction)))
        assert decided.forecast == made.forecast
        assert decided.budget_bytes == made.budget_bytes
        assert decided.outcome is not Outcome.OVER_BUDGET


def test_a_plan_over_the_budget_is_said_to_be() -> None:
    peak = decide_fixed(GRAPH, PLAN, setup(WIDE)).forecast.peak_bytes
    assert decide_fixed(GRAPH, PLAN, setup(Budget(total_bytes=peak))).outcome is Outcome.FITS
    assert decide_fixed(GRAPH, PLAN, setup(Budget(total_bytes=peak - 1))).outcome is Outcome.OVER_BUDGET


def effectful() -> JointGraph:
    graph = layers(3)
    traits = {"b1": frozenset({Trait.RANDOM}), "b0": frozenset({Trait.RANDOM})}
    # Two operations that could run in either order as far as their inputs go.
    inputs = {"b0": ("b2", "f0")}
    changed = [
        replace(v, traits=traits.get(v.name, v.traits), inputs=inputs.get(v.name, v.inputs)) for v in graph.values
    ]
    return replace(graph, values=tuple(changed), backward_outputs=("b0", "b1"))


@pytest.mark.parametrize(
    ("graph", "plan", "why"),
    [
        pytest.param(GRAPH, Plan(PLAN.saved, ("x", *PLAN.backward)), "`x` is a graph input", id="computes an input"),
        pytest.param(GRAPH, Plan(PLAN.saved, ("t", *PLAN.backward)), "`t` is a graph input", id="computes a tangent"),
        pytest.param(GRAPH, Plan(PLAN.saved, PLAN.backward[::-1]), "before it is available", id="backwards"),
        pytest.param(GRAPH, Plan(PLAN.saved, PLAN.backward[:-1]), "never computed", id="ends early"),
        pytest.param(GRAPH, Plan(frozenset({"b2"}), PLAN.backward), "not a forward value", id="saves a gradient"),
        pytest.param(GRAPH, Plan(PLAN.saved, (*PLAN.backward, "b0")), "runs twice", id="a gradient twice"),
        pytest.param(
            GRAPH, Plan(PLAN.saved, ("f0", *PLAN.backward)), "`f0` is computed .* but not read", id="never read"
        ),
        pytest.param(
            GRAPH, Plan(PLAN.saved, (*PLAN.backward, "f2")), "`f2` is computed .* but not read", id="too late"
        ),
        pytest.param(
            layers(4, f1=[Trait.RANDOM]),
            schedule(GRAPH, {"f2"}, traced_order(GRAPH)),
            "`f1` is must-save but recomputed",
            id="draws again",
        ),
        pytest.param(
            effectful(),
            schedule(effectful(), {"f0", "f1", "f2"}, ("b2", "b0", "b1")),
            "`b1` would run in another order",
            id="side effects in another order",
        ),
    ],
)
def test_a_plan_that_breaks_a_promise_is_refused_with_the_promise(graph: JointGraph, plan: Plan, why: str) -> None:
    with pytest.raises(BrokenPlan, match=why):
        decide_fixed(graph, plan, setup(WIDE))


def test_a_plan_that_draws_a_mask_again_is_refused_by_a_release_whose_kernels_draw_other_numbers() -> None:
    graph = layers(4, f1=[Trait.SEEDED])
    on_gpu = replace(graph, values=tuple(replace(v, device="cuda") for v in graph.values))
    plan = schedule(on_gpu, {"f2"}, traced_order(on_gpu))
    newer = Setup(WIDE, load_profile("h100-sxm"), rules=InductorRules(gpu_numbers_repeat=True))

    assert decide_fixed(on_gpu, plan, newer).plan == plan
    with pytest.raises(BrokenPlan, match="`f1` is must-save but recomputed"):
        decide_fixed(on_gpu, plan, replace(newer, rules=InductorRules()))


def test_without_side_effects_any_order_will_do() -> None:
    graph = replace(effectful(), values=tuple(replace(v, traits=frozenset()) for v in effectful().values))
    plan = schedule(graph, {"f0", "f1", "f2"}, ("b2", "b0", "b1"))
    assert decide_fixed(graph, plan, setup(WIDE)).plan == plan


def test_the_compiled_peak_decides_where_there_is_one() -> None:
    decided = decide_fixed(GRAPH, PLAN, setup(WIDE))
    fits = check_fixed(decided, WIDE, lambda candidate: CompiledPeak(candidate, 20 * UNIT))
    over = check_fixed(decided, WIDE, lambda candidate: CompiledPeak(candidate, 1000 * UNIT))
    assert (fits.outcome, fits.compiled_bytes) == (Outcome.FITS, 20 * UNIT)
    assert (over.outcome, over.compiled_bytes) == (Outcome.OVER_BUDGET, 1000 * UNIT)
    assert fits.plan == over.plan == PLAN


def test_a_fraction_between_forecasts_is_held_by_a_forecast() -> None:
    """What is saved at a fraction can be loaded at that fraction, whatever it compiles to."""
    for fraction in (0.0, 1.0):
        asked = setup(Budget(fraction=fraction))
        decided = decide_fixed(GRAPH, decision(GRAPH, fraction).plan, asked)
        seen = check_fixed(decided, asked.budget, lambda candidate: CompiledPeak(candidate, 1000 * UNIT))
        assert seen.outcome is Outcome.FITS
        assert seen.budget_bytes >= 1000 * UNIT


def test_fraction_1_is_whatever_the_plan_needs() -> None:
    most = decide_fixed(
        GRAPH, schedule(GRAPH, {"f0", "f1", "f2", "f3"}, traced_order(GRAPH)), setup(Budget(fraction=1.0))
    )
    assert most.outcome is Outcome.FITS
    lowest = decision(GRAPH, 0.0)
    least = decide_fixed(GRAPH, most.plan, setup(Budget(fraction=0.0)))
    assert (least.outcome is Outcome.OVER_BUDGET) == (most.forecast.peak_bytes > lowest.budget_bytes)
