"""The fastest plan that fits, for every budget."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
import torch
import torch.nn.functional as F
from graphs import chain, problem, random_problem
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from traced import joint_of, read_joint

from autockpt.cost_models import load_profile
from autockpt.passes.forecast.simulator import Simulator
from autockpt.passes.generators.generator import SaveEverything
from autockpt.passes.generators.space import Effort
from autockpt.passes.planners.decide import pose, resolve
from autockpt.passes.planners.frontier import PLANNERS, Frontier
from autockpt.passes.problem.plan import Budget, Lowering, Setup
from autockpt.passes.problem.verify import verify


def stack(layers: int) -> nn.Module:
    """Convolutions with a residual stream of one width."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Conv2d(8, 16, 1), nn.Conv2d(16, 8, 1)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.two(F.gelu(self.one(x)))

    return nn.Sequential(nn.Conv2d(3, 8, 1), *(Block() for _ in range(layers)), Mean())


def tower() -> nn.Module:
    """Convolutions of growing width, with norms."""
    widths = [(3, 8), (8, 16), (16, 32)]
    layers = (layer for a, b in widths for layer in (nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.SiLU()))
    return nn.Sequential(*layers, Mean())


class Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.square().mean()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_larger_budget_never_gives_a_slower_plan(seed: int) -> None:
    frontier = Frontier(random_problem(seed, max_values=10))
    low, high = frontier.lowest.peak_bytes, frontier.fastest.peak_bytes
    budgets = [low + (high - low) * step // 8 for step in range(9)]
    found = [frontier.within(budget) for budget in budgets]
    assert all(a is not None and b is not None and a.seconds >= b.seconds for a, b in pairwise(found))
    assert all(f.peak_bytes <= b for f, b in zip(found, budgets, strict=True) if f is not None)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), fraction=st.sampled_from([0.0, 1e-9, 0.3, 1.0]), lowering=st.sampled_from(Lowering))
def test_a_fraction_always_fits(seed: int, fraction: float, lowering: Lowering) -> None:
    """The minimum peak is that of a plan which was found, so at 0.0 that plan is taken."""
    frontier = Frontier(replace(random_problem(seed, max_values=10), lowering=lowering))
    budget_bytes = resolve(Budget(fraction=fraction), frontier)
    found = frontier.within(budget_bytes)
    assert found is not None
    assert found.peak_bytes <= budget_bytes


def test_below_the_minimum_peak_there_is_no_plan() -> None:
    frontier = Frontier(problem(chain(6)))
    assert frontier.within(frontier.lowest.peak_bytes - 1) is None


def test_a_chain_of_equal_layers_has_plans_between_all_and_nothing() -> None:
    """One price would keep every layer or none; neither is the lowest peak."""
    frontier = Frontier(problem(chain(16)))
    lowest = frontier.lowest
    assert 0 < len(lowest.plan.saved) < 16
    assert lowest.peak_bytes < 0.75 * frontier.fastest.peak_bytes


def test_the_peak_of_a_candidate_is_the_forecast_of_its_plan() -> None:
    frontier = Frontier(problem(chain(8)))
    assert frontier.lowest in frontier.space.evaluator.evaluated
    for candidate in frontier.space.evaluator.evaluated:
        forecast = Simulator(frontier.problem).forecast(candidate.plan)
        assert candidate.peak_bytes == forecast.peak_bytes
        assert candidate.seconds == pytest.approx(forecast.step_seconds)


def test_no_baseline_that_fits_is_faster_than_the_fastest_plan() -> None:
    """One clock: saving everything is a plan like any other."""
    for seed in range(20):
        posed = replace(random_problem(seed), lowering=Lowering.INDUCTOR)
        frontier = Frontier(posed)
        everything = SaveEverything(frontier.space).fastest()
        assert frontier.fastest.seconds <= everything.seconds
        for budget in (everything.peak_bytes, frontier.fastest.peak_bytes):
            found = frontier.within(budget)
            assert found is not None
            assert found.seconds <= everything.seconds or everything.peak_bytes > budget


def test_what_the_generators_leave_of_a_budget_is_filled_with_saved_values() -> None:
    """On a stack of convolutions some budget has a faster plan than any generator finds, and no budget a slower one."""
    graph = read_joint(*joint_of(stack(8), torch.randn(64, 3, 16, 16)))
    posed = pose(graph, Setup(Budget(fraction=0.5), load_profile("cpu")))
    filled, unfilled = Frontier(posed), Frontier(posed, effort=Effort(fill_replays=0))
    low, high = filled.lowest.peak_bytes, filled.fastest.peak_bytes
    gains = []
    for step in range(1, 12):
        budget = low + (high - low) * step // 12
        one, other = filled.within(budget), unfilled.within(budget)
        assert one is not None
        assert other is not None
        verify(posed, one.plan)
        assert one.peak_bytes <= budget
        gains.append(other.seconds / one.seconds)
    assert min(gains) >= 1.0
    assert max(gains) > 1.0


def test_every_planner_of_the_options_has_a_fastest_plan_and_a_lowest() -> None:
    for generators in PLANNERS.values():
        frontier = Frontier(problem(chain(8)), generators)
        assert frontier.lowest.peak_bytes <= frontier.fastest.peak_bytes


@pytest.mark.parametrize("model", [stack(8), tower()], ids=["stack", "tower"])
def test_with_fused_kernels_a_larger_budget_is_never_slower(model: nn.Module) -> None:
    """The clock of fused kernels is what is compared, also where a frontier is made anew for each budget."""
    graph = read_joint(*joint_of(model, torch.randn(64, 3, 16, 16)))
    setup = Setup(Budget(fraction=0.5), load_profile("cpu"))
    ends = Frontier(pose(graph, setup))
    low, high = ends.lowest.peak_bytes, ends.fastest.peak_bytes
    slowest = inf
    for step in range(13):
        found = Frontier(pose(graph, setup)).within(low + (high - low) * step // 12)
        assert found is not None
        assert found.seconds <= slowest
        slowest = found.seconds
