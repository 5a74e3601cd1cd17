"""The table of plans of one graph: what its figures count, and which plans it holds."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
import torch
from graphs import random_problem
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F
from traced import joint_of, read_joint

from autockpt.cost_models import load_profile
from autockpt.passes.planners import Frontier, pose
from autockpt.passes.problem import Budget, Setup, verify
from autockpt.passes.step import PlanOption, PlanTable, plan_table


class Block(nn.Module):
    """Its output is the residual stream, which its backward does not read."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


@pytest.fixture(scope="module")
def frontier() -> Frontier:
    graph = read_joint(*joint_of(Block(), torch.randn(64, 32, requires_grad=True)))
    return Frontier(pose(graph, Setup(Budget(fraction=0.5), load_profile("a100"))))


@pytest.fixture(scope="module")
def table(frontier: Frontier) -> PlanTable:
    return plan_table(frontier)


def test_the_table_reaches_from_the_fastest_plan_to_the_least_saved_bytes(frontier: Frontier, table: PlanTable) -> None:
    least = min(cut.saved_bytes for cut in frontier.space.hull.cuts)

    assert table.fastest.seconds <= frontier.fastest.seconds
    assert min(option.saved_bytes for option in table.options) <= least < table.fastest.saved_bytes
    assert len(table.options) > 2


def test_no_option_dominates_another(table: PlanTable) -> None:
    assert not any(one.dominates(other) or other.dominates(one) for one, other in combinations(table.options, 2))


def test_passes_are_counted_beyond_graph_inputs_and_without_outputs_of_the_forward(
    frontier: Frontier, table: PlanTable
) -> None:
    graph = frontier.problem.graph
    output = 64 * 32 * 4
    for option in table.options:
        assert option.candidate is not None
        assert option.forward_bytes == option.candidate.forward_bytes - graph.graph_input_bytes
        # The residual stream is an output, and not saved.
        assert option.saved_output_bytes == 0
        assert option.backward_bytes == option.candidate.backward_bytes - graph.graph_input_bytes - output


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_options_of_random_graphs_are_sound_plans_with_bytes_that_add_up(seed: int) -> None:
    problem = random_problem(seed)
    for option in plan_table(Frontier(problem)).options:
        assert option.candidate is not None
        verify(problem, option.candidate.plan)
        assert option.held_bytes == sum(problem.graph.bytes_of(name) for name in option.candidate.plan.saved)
        assert option.held_bytes <= option.forward_bytes
        assert option.held_bytes <= option.backward_bytes


@pytest.mark.parametrize("share", [0.7, 0.4])
def test_the_interval_program_respects_a_cap_on_saved_bytes(frontier: Frontier, share: float) -> None:
    space, cap = frontier.space, int(frontier.fastest.saved_bytes * share)

    capped = space.intervals(frontier.fastest.peak_bytes, cap)

    assert capped is not None
    assert capped.saved_bytes <= cap < frontier.fastest.saved_bytes


def test_many_options_are_thinned_to_the_fastest_under_each_pair_of_caps() -> None:
    options = [PlanOption(n, n + m, n + m, 1000.0 - 7 * n - 3 * m) for n in range(20) for m in range(20)]

    table = PlanTable.of(options, caps=5)

    assert 5 < len(table.options) <= 25
    assert table.fastest.seconds == min(option.seconds for option in options)
    assert min(option.saved_bytes for option in table.options) == 0
    assert min(option.pass_bytes for option in table.options) == 0


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one option"):
        PlanTable(())


@pytest.fixture(scope="module")
def linked() -> Frontier:
    device = replace(load_profile("a100"), device_to_host_bytes_per_second=1e12, host_to_device_bytes_per_second=1e12)
    device = replace(device, copy_latency_seconds=0.0)
    graph = read_joint(*joint_of(Block(), torch.randn(64, 32, requires_grad=True)))
    return Frontier(pose(graph, Setup(Budget(fraction=0.5), device, host_bytes=2**30)))


def test_with_a_link_there_are_options_that_hold_less_and_recompute_nothing(linked: Frontier, table: PlanTable) -> None:
    hosted = plan_table(linked).options
    offloading = [option for option in hosted if option.host_bytes]

    assert hosted[0].host_bytes == 0
    assert offloading
    for option in offloading:
        assert option.candidate is not None
        on_host = option.candidate.plan.on_host
        assert option.host_bytes == sum(linked.problem.graph.bytes_of(name) for name in on_host) <= 2**30
    # At the same saved bytes, the table without a link has to recompute.
    least = min(offloading, key=lambda option: option.seconds)
    without = [option for option in table.options if option.saved_bytes <= least.saved_bytes]
    assert min(option.seconds for option in without) > least.seconds


def test_no_option_is_below_the_tables_bound_with_a_link(linked: Frontier) -> None:
    """Of plans that save no less than a corner of the bound."""
    table = plan_table(linked)
    saved = [point.saved_bytes for point in table.bound]
    assert saved == sorted(saved, reverse=True)
    for option in table.options:
        below = [point for point in table.bound if point.saved_bytes <= option.saved_bytes]
        assert option.seconds >= below[0].seconds * (1 - 1e-9) if below else True
