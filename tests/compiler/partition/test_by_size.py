"""A budget holds at every size, however sizes become dynamic, with few plans."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo import config as dynamo_config

import autockpt
from autockpt.measure.peak import measure_peak
from autockpt.partition.record import GraphDecision
from autockpt.passes.sizes import VARIANTS

WIDTH = 48
BUDGET = 9 * 2**18


class Model(nn.Module):
    """Bytes that grow with the batch, with the length, and with its square."""

    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.mix = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(layers))
        self.wide = nn.ModuleList(nn.Linear(WIDTH, 4 * WIDTH) for _ in range(layers))
        self.narrow = nn.ModuleList(nn.Linear(4 * WIDTH, WIDTH) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for mix, wide, narrow in zip(self.mix, self.wide, self.narrow, strict=True):
            scores = (mix(x) @ x.transpose(1, 2)).tanh()
            x = x + narrow(torch.sigmoid(wide(scores @ x)))
        return x.pow(2).mean()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Trained:
    """One compiled model; `call` runs a step at some sizes and checks budget and gradients."""

    def __init__(self, way: str, budget: int | float | str = BUDGET, **options: Any) -> None:
        torch.manual_seed(0)
        self.model, self.way, self.budget = Model(), way, budget
        options = {"lower": "eager", **options, "memory_budget": budget}
        self.compiled = torch.compile(
            self.model, backend="autockpt", options=options, dynamic=True if way == "dynamic=True" else None
        )
        self.before = len(autockpt.decisions())

    @property
    def decisions(self) -> tuple[GraphDecision, ...]:
        return autockpt.decisions()[self.before :]

    def call(self, batch: int, length: int = 24, mark: Callable[[Tensor], None] | None = None) -> int:
        x = torch.randn(batch, length, WIDTH)
        if self.way == "mark_dynamic":
            torch._dynamo.mark_dynamic(x, [0, 1])
        if mark:
            mark(x)

        def step() -> None:
            self.model.zero_grad(set_to_none=True)
            self.compiled(x).backward()

        step()
        held = x.nbytes + sum(parameter.nbytes for parameter in self.model.parameters())
        measured = measure_peak(step, x.device) + held
        gradients = torch.autograd.grad(self.model(x), list(self.model.parameters()))
        for parameter, gradient in zip(self.model.parameters(), gradients, strict=True):
            torch.testing.assert_close(parameter.grad, gradient)
        self.model.zero_grad(set_to_none=True)
        return measured


@pytest.mark.parametrize("way", ["automatic", "dynamic=True", "mark_dynamic"])
def test_every_size_is_within_the_budget(way: str) -> None:
    trained = Trained(way)
    for length in (24, 40):
        for batch in (3, 8, 14):
            assert trained.call(batch, length) <= BUDGET, (batch, length)
    ranges = [made.sizes for made in trained.decisions if made.sizes is not None]
    assert 1 < len(ranges) <= VARIANTS
    assert all(made.budget_bytes <= BUDGET for made in trained.decisions)


@pytest.mark.parametrize("sizes", [range(16, 28), range(27, 3, -2)], ids=["growing", "shrinking"])
def test_sizes_that_change_slowly_get_few_plans(sizes: range) -> None:
    trained = Trained("dynamic=True")
    for batch in sizes:
        trained.compiled(torch.randn(batch, 24, WIDTH)).backward()
    assert 1 < len(trained.decisions) <= VARIANTS
    assert all(made.peak_bytes <= BUDGET for made in trained.decisions)
    assert trained.call(27) <= BUDGET


def test_a_call_that_no_plan_fits_is_refused_and_the_others_go_on() -> None:
    trained = Trained("dynamic=True")
    assert trained.call(6) <= BUDGET
    with pytest.raises(autockpt.BudgetError, match=r"for a call with x\.size\(0\)=400, .*shrink the batch"):
        trained.call(400)
    assert trained.call(8) <= BUDGET


def test_small_sizes_run_a_faster_plan_than_large_ones() -> None:
    trained = Trained("dynamic=True")
    trained.call(26)
    trained.call(3)
    large, small = trained.decisions
    assert large.recompute_seconds > small.recompute_seconds == 0.0
    assert large.sizes is not None
    smallest, largest = large.sizes.limits()["x.size(0)"]
    assert 3 < smallest <= 26 <= (largest or 0)
    assert f"x.size(0) {smallest} to {largest}" in str(large).partition("holds for")[2]
    assert large.to_json()["sizes"]["largest"]["x.size(0)"] == largest


def test_a_declared_range_has_one_plan_for_its_largest_size() -> None:
    trained = Trained("marked")

    def mark(x: Tensor) -> None:
        torch._dynamo.mark_dynamic(x, 0, min=2, max=24)

    for batch in (4, 24, 16):
        assert trained.call(batch, mark=mark) <= BUDGET
    (made,) = trained.decisions
    assert made.sizes is not None
    assert made.sizes.limits() == {"x.size(0)": (1, 24)}


def test_a_fraction_moves_with_the_sizes() -> None:
    trained = Trained("dynamic=True", budget=0.5)
    trained.call(4)
    trained.call(64)
    (made,) = trained.decisions
    assert "any x.size(0)" in str(made)


def test_the_last_compilation_that_dynamo_allows_says_so() -> None:
    trained = Trained("dynamic=True")
    with dynamo_config.patch(recompile_limit=1), pytest.warns(RuntimeWarning, match=r"last time.*holds for x\.size"):
        trained.call(4)


def test_where_dynamo_compiles_seldom_a_plan_is_for_all_sizes_that_fit() -> None:
    trained = Trained("dynamic=True")
    with dynamo_config.patch(recompile_limit=2), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        trained.call(4)
    (one,) = trained.decisions
    torch._dynamo.reset()
    exact = Trained("dynamic=True")
    exact.call(4)
    (other,) = exact.decisions
    assert one.sizes is not None
    assert other.sizes is not None
    assert (one.sizes.limits()["x.size(0)"][1] or 0) > 1.2 * (other.sizes.limits()["x.size(0)"][1] or 0)


@pytest.mark.inductor
def test_generated_code_is_within_the_budget_at_sizes_that_it_was_not_traced_at() -> None:
    trained = Trained("mark_dynamic", lower="inductor")
    for batch, length in ((3, 24), (14, 24), (14, 40)):
        assert trained.call(batch, length) <= BUDGET, (batch, length)
    made = trained.decisions
    assert 1 < len(made) <= VARIANTS
    # A guard of a dry run would have made the sizes static, and Dynamo refuses that for sizes that were marked.
    assert all(one.compiled_bytes is not None and one.sizes is not None for one in made)
