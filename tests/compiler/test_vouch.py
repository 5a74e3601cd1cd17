"""Operators that nobody vouched for run once: gradients stay right whatever state they have."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import autockpt
from autockpt import vouch
from autockpt.partition import Partitioner

CALLS = [0]


@torch.library.custom_op("autockpt_vouch::mask", mutates_args=())
def mask(x: Tensor) -> Tensor:
    """Random, without the tag that says so."""
    return (torch.rand_like(x) > 0.5).to(x.dtype)


@torch.library.custom_op("autockpt_vouch::count", mutates_args=())
def count(x: Tensor) -> Tensor:
    CALLS[0] += 1
    return torch.full_like(x, float(CALLS[0]))


@torch.library.custom_op("autockpt_vouch::both", mutates_args=())
def both(x: Tensor) -> tuple[Tensor, Tensor]:
    """Two results, of which the model reads views."""
    CALLS[0] += 1
    return torch.full_like(x, float(CALLS[0])), torch.rand_like(x)


for operator in (mask, count):
    operator.register_fake(torch.empty_like)
both.register_fake(lambda x: (torch.empty_like(x), torch.empty_like(x)))


class Deep(nn.Module):
    def __init__(self, operator: Callable[[Tensor], Any], layers: int = 6) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(layers))
        self.operator = operator

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            drawn = self.operator(x.detach())
            scale = drawn[0].t().t() * drawn[1].view(-1).view_as(x) if isinstance(drawn, tuple) else drawn
            x = x + F.gelu(layer(x)) * scale * 0.1
        return x.square().mean()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty one, for this test."""
    monkeypatch.setattr(vouch, "_ALLOWED", set())
    return


pytestmark = pytest.mark.usefixtures("registry")


def gradients(model: nn.Module, forward: Callable[..., Tensor], x: Tensor) -> list[Tensor]:
    model.zero_grad()
    torch.manual_seed(7)
    CALLS[0] = 0
    forward(x).backward()
    return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]


def compiled(model: nn.Module, **options: Any) -> Callable[..., Tensor]:
    return torch.compile(model, backend="autockpt", options={"lower": "eager", "memory_budget": 0.0, **options})


@pytest.mark.parametrize("budget", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("operator", [mask, count, both])
def test_an_operator_with_a_state_of_its_own_runs_once_at_every_budget(operator: Any, budget: float) -> None:
    model, x = Deep(operator), torch.randn(64, 32)
    expected = gradients(model, model, x)
    got = gradients(model, compiled(model, memory_budget=budget), x)
    # Neither timing nor planning has called it either: a counter would have moved on.
    assert all(torch.equal(one, other) for one, other in zip(got, expected, strict=True))
    assert CALLS[0] == (0 if operator is mask else 6)


@pytest.mark.inductor
@pytest.mark.parametrize(("operator", "budget"), [(mask, 0.0), (both, 0.3)])
def test_the_same_in_code_that_inductor_generates(operator: Any, budget: float) -> None:
    model, x = Deep(operator), torch.randn(64, 32)
    expected = gradients(model, model, x)
    got = gradients(model, compiled(model, memory_budget=budget, lower="inductor"), x)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other)
    assert autockpt.decisions()[-1].forecast.recompute_share > 0


def test_reports_name_the_operator_its_bytes_and_what_releases_it() -> None:
    model, x = Deep(mask), torch.randn(64, 32)
    gradients(model, compiled(model), x)
    made = autockpt.decisions()[-1]
    release = 'autockpt.allow_recompute("autockpt_vouch::mask")'
    held = {"operator": "autockpt_vouch::mask", "calls": 6, "bytes": 6 * 64 * 32 * 4, "release": release}
    assert made.to_json()["held"] == [held]
    assert f"{release} frees up to 48.0 KiB" in str(made)
    assert f"results of 6 calls; {release} releases them" in made.breakdown()
    reasons = made.to_json()["must_save"].values()
    assert sum("nobody vouched that" in reason for reason in reasons) == 6


def test_an_analysis_names_it_too() -> None:
    analysis = autockpt.analyze(Deep(lambda x: mask(x)), torch.randn(64, 32), memory_budget=0.0)
    assert [held["operator"] for held in analysis.report["held"]] == ["autockpt_vouch::mask"]
    assert 'autockpt.allow_recompute("autockpt_vouch::mask") frees up to 48.0 KiB' in str(analysis)
    reasons = [row["reason"] for row in analysis.report["graphs"][0]["tensors"] if row["decision"] == "saved"]
    assert any("autockpt_vouch::mask" in reason for reason in reasons)


@pytest.mark.parametrize(
    "given",
    [mask, torch.ops.autockpt_vouch.mask, torch.ops.autockpt_vouch.mask.default, "autockpt_vouch::mask"],
    ids=["custom_op", "packet", "overload", "name"],
)
def test_an_operator_that_was_vouched_for_may_be_recomputed(given: Any) -> None:
    assert autockpt.allow_recompute(given) is given
    model, x = Deep(mask), torch.randn(64, 32)
    gradients(model, compiled(model), x)
    made = autockpt.decisions()[-1]
    assert made.to_json()["held"] == []
    assert any(name.startswith("mask") for name in made.to_json()["recomputed"])


def test_it_decorates_the_definition_of_an_operator() -> None:
    @autockpt.allow_recompute
    @torch.library.custom_op("autockpt_vouch::twice", mutates_args=())
    def twice(x: Tensor) -> Tensor:
        return x * 2

    assert vouch.allowed_operators() == ("autockpt_vouch::twice",)
    assert torch.equal(twice(torch.ones(1)), torch.full((1,), 2.0))


def test_a_random_tag_wins_over_a_promise() -> None:
    random = (torch.Tag.nondeterministic_seeded,)

    @torch.library.custom_op("autockpt_vouch::tagged", mutates_args=(), tags=random)
    def tagged(x: Tensor) -> Tensor:
        return torch.rand_like(x)

    tagged.register_fake(torch.empty_like)
    autockpt.allow_recompute(tagged)
    model, x = Deep(tagged), torch.randn(64, 32)
    expected = gradients(model, model, x)
    assert all(map(torch.equal, gradients(model, compiled(model), x), expected))


@pytest.mark.parametrize("given", ["mask", "autockpt_vouch::absent", "no_such_library::op", "::", 3, print])
def test_what_is_no_operator_is_refused_in_a_sentence(given: Any) -> None:
    with pytest.raises(autockpt.OptionError, match="allow_recompute"):
        autockpt.allow_recompute(given)


def test_the_promise_is_part_of_the_key_of_inductors_caches() -> None:
    keys = []
    for promise in (None, mask):
        if promise is not None:
            autockpt.allow_recompute(promise)
        backend = autockpt.Backend(memory_budget=0.5)
        request = importlib.import_module("autockpt.backend")._request(torch.device("cpu"), backend.options)
        keys.append(Partitioner(request, "error").key)
    assert keys[0] != keys[1]


def test_threads_may_vouch_at_once() -> None:
    names = [f"triton::module.kernel_{number}" for number in range(200)]
    threads = [threading.Thread(target=autockpt.allow_recompute, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert vouch.allowed_operators() == tuple(sorted(names))


def test_must_recompute_vouches_and_a_checkpointed_region_does_not() -> None:
    def policy(_: Any, operator: Any, *__: Any, **___: Any) -> CheckpointPolicy:
        chosen = operator is torch.ops.autockpt_vouch.count.default
        return CheckpointPolicy.MUST_RECOMPUTE if chosen else CheckpointPolicy.PREFER_SAVE

    class Region(nn.Module):
        def __init__(self, **named: Any) -> None:
            super().__init__()
            self.inner, self.named = Deep(count, layers=2), named

        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(self.inner, x, use_reentrant=False, **self.named)

    x = torch.randn(64, 32)
    region = Region()
    gradients(region, compiled(region), x)
    assert CALLS[0] == 2
    tagged = Region(context_fn=lambda: create_selective_checkpoint_contexts(policy))
    gradients(tagged, compiled(tagged), x)
    assert CALLS[0] > 4  # it was timed, too: MUST_RECOMPUTE says that it may run any number of times
    assert autockpt.decisions()[-1].to_json()["held"] == []
