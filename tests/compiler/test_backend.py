"""The backend with `lower="eager"`: same gradients at every budget, and never a broken training run."""

from __future__ import annotations

import importlib
import json
import logging
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import autockpt
from autockpt.measure.peak import measure_peak
from autockpt.passes.problem.plan import Outcome


class Deep(nn.Module):
    def __init__(self, width: int = 64, layers: int = 6, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + self.dropout(F.gelu(layer(x)))
        return x.square().mean()


def gradients(model: nn.Module, forward: Callable[..., Tensor], *inputs: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    torch.manual_seed(7)
    forward(*inputs).backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def compiled(model: Any, **options: Any) -> Any:
    return torch.compile(model, backend="autockpt", options={"lower": "eager", **options})


def assert_equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    assert [name for name in one if not torch.equal(one[name], other[name])] == []


@pytest.mark.parametrize("budget", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_gradients_are_those_of_eager_at_every_budget(budget: float) -> None:
    model, x = Deep(), torch.randn(32, 64)
    assert_equal(gradients(model, compiled(model, memory_budget=budget), x), gradients(model, model, x))


def test_a_dropout_mask_is_kept_and_never_drawn_again() -> None:
    model, x = Deep(dropout=0.5), torch.randn(32, 64)
    lowest = gradients(model, compiled(model, memory_budget=0.0), x)
    assert any(reason.startswith("random") for reason in autockpt.decisions()[-1].decision.problem.must_save.values())
    torch._dynamo.reset()
    assert_equal(lowest, gradients(model, compiled(model, memory_budget=1.0), x))


def test_the_measured_peak_of_the_eager_lowering_is_inside_its_budget() -> None:
    model, x = Deep(width=256, layers=8), torch.randn(512, 256)
    for fraction in (0.0, 0.5, 1.0):
        torch._dynamo.reset()
        step = compiled(model, memory_budget=fraction)
        gradients(model, step, x)
        model.zero_grad(set_to_none=True)
        made = autockpt.decisions()[-1]
        measured = measure_peak(lambda step=step: step(x).backward(), x.device) + made.forecast.graph_input_bytes
        assert measured <= made.budget_bytes
        assert made.peak_bytes == pytest.approx(measured, rel=0.1)


def test_a_budget_below_the_minimum_peak_names_it_what_fills_it_and_the_ways_out() -> None:
    model, x = Deep(), torch.randn(32, 64)
    with pytest.raises(autockpt.BudgetError, match="raise memory_budget") as caught:
        compiled(model, memory_budget="64KiB")(x)
    text = str(caught.value)
    for word in ("parameters", "inputs", "gradients", "saved", "reserve", "batch", "on_infeasible"):
        assert word in text
    assert caught.value.budget_bytes == 64 * 1024 < caught.value.min_peak_bytes
    torch._dynamo.reset()
    gradients(model, compiled(model, memory_budget=caught.value.min_peak_bytes), x)
    assert autockpt.decisions()[-1].peak_bytes <= caught.value.min_peak_bytes


def test_on_infeasible_minimum_runs_at_the_minimum_peak_and_says_so() -> None:
    model, x = Deep(), torch.randn(32, 64)
    expected = gradients(model, model, x)
    with pytest.warns(RuntimeWarning, match="running at the minimum peak"):
        got = gradients(model, compiled(model, memory_budget="64KiB", on_infeasible="minimum"), x)
    assert_equal(got, expected)
    assert autockpt.decisions()[-1].outcome is Outcome.OVER_BUDGET


def test_every_decision_knows_the_minimum_peak_and_the_fastest_plans_peak() -> None:
    model, x = Deep(), torch.randn(32, 64)
    gradients(model, compiled(model, memory_budget="1GiB"), x)
    made = autockpt.decisions()[-1]
    assert made.outcome is Outcome.FASTEST
    assert made.min_peak_bytes < made.fastest_bytes == made.peak_bytes


def test_reserve_comes_off_the_budget() -> None:
    model, x = Deep(), torch.randn(32, 64)
    gradients(model, compiled(model, memory_budget="10MiB", reserve="4MiB"), x)
    gradients(model, compiled(model, memory_budget="10MiB"), x)
    # Of other tests a few tensors may be alive, and come off both.
    reserved, whole = (made.budget_bytes for made in autockpt.decisions()[-2:])
    assert whole - reserved == pytest.approx(4 * 2**20, abs=2**18)


@pytest.mark.parametrize("stage", ["read", "decide", "split", "verify_modules", "tidy"])
def test_any_failure_of_ours_falls_back_to_torch_with_one_warning(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise KeyError("on purpose")

    home = "autockpt.partition.choose" if stage == "decide" else "autockpt.inductor.joint"
    monkeypatch.setattr(importlib.import_module(home), stage, fail)
    model, x = Deep(), torch.randn(32, 64)
    expected = gradients(model, model, x)
    with pytest.warns(RuntimeWarning, match="runs torch's own partition") as caught:
        got = gradients(model, compiled(model, memory_budget=0.0), x)
    assert_equal(got, expected)
    ours = [str(w.message) for w in caught if "autockpt" in str(w.message)]
    assert len(ours) == 1
    assert "on purpose" in ours[0]
    assert "report" in ours[0]


def test_graphs_without_a_backward_pass_through() -> None:
    before = len(autockpt.decisions())
    model, x = Deep(), torch.randn(4, 64)
    with torch.no_grad():
        assert torch.equal(compiled(model)(x), model(x))
    assert torch.equal(compiled(lambda t: t + 1)(x), x + 1)
    assert compiled(lambda t: t)(x) is x
    assert len(autockpt.decisions()) == before


def test_a_frozen_input_layer_and_an_unused_parameter_are_no_trouble() -> None:
    model, x = Deep(), torch.randn(8, 64)
    model.layers[0].requires_grad_(False)
    model.unused = nn.Parameter(torch.ones(3))
    assert_equal(gradients(model, compiled(model, memory_budget=0.0), x), gradients(model, model, x))


def test_sizes_that_change_are_planned_by_their_hints() -> None:
    model = Deep()
    step = torch.compile(model, backend="autockpt", dynamic=True, options={"lower": "eager", "memory_budget": 0.0})
    for rows in (8, 24, 40):
        x = torch.randn(rows, 64)
        assert_equal(gradients(model, step, x), gradients(model, model, x))


def test_other_options_compile_anew() -> None:
    model, x = Deep(), torch.randn(32, 64)
    before = len(autockpt.decisions())
    for budget in (0.0, 1.0, 0.0):
        gradients(model, compiled(model, memory_budget=budget), x)
    assert len(autockpt.decisions()) == before + 2
    backends = [
        autockpt.Backend(0.3, lower="eager"),
        autockpt.Backend(0.4, lower="eager"),
        autockpt.Backend(0.3, lower="eager"),
    ]
    for backend in backends:
        gradients(model, torch.compile(model, backend=backend), x)
    assert len(autockpt.decisions()) == before + 4


def selective(policies: dict[Any, CheckpointPolicy]) -> Any:
    def policy(ctx: Any, operator: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        return policies.get(operator, CheckpointPolicy.PREFER_RECOMPUTE)

    return partial(create_selective_checkpoint_contexts, policy)


@pytest.mark.parametrize("budget", [0.0, 1.0])
def test_tags_win_over_the_planner_at_every_budget(budget: float) -> None:
    weight = torch.randn(16, 16, requires_grad=True)

    def block(x: Tensor) -> Tensor:
        return torch.sin(torch.cos(x @ weight) @ weight)

    def model(x: Tensor) -> Tensor:
        policies = {
            torch.ops.aten.mm.default: CheckpointPolicy.MUST_SAVE,
            torch.ops.aten.cos.default: CheckpointPolicy.MUST_RECOMPUTE,
        }
        return checkpoint(block, x, use_reentrant=False, context_fn=selective(policies)).sum()

    x = torch.randn(8, 16)
    compiled(model, memory_budget=budget)(x).backward()
    saved = autockpt.decisions()[-1].decision.plan.saved
    assert {"mm", "mm_1"} <= saved
    assert not any(name.startswith("cos") for name in saved)


def test_the_log_says_it_in_one_line_and_the_table_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    model, x = Deep(), torch.randn(32, 64)
    with caplog.at_level(logging.DEBUG, logger="autockpt"):
        gradients(model, compiled(model, memory_budget=0.5), x)
    ours = [record for record in caplog.records if record.name == "autockpt"]
    info = [r.getMessage() for r in ours if r.levelno == logging.INFO]
    assert len(info) == 1
    for word in ("peak", "budget", "recomputed", "planned in"):
        assert word in info[0]
    table = next(r.getMessage() for r in ours if r.levelno == logging.DEBUG)
    assert "saved" in table
    assert "recomputed" in table
    assert "test_backend.py" in table


def test_a_decision_is_json(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[tuple[str, str]] = []

    def trace(kind: str, metadata_fn: Any = dict, payload_fn: Any = str, **more: Any) -> None:
        if kind == "artifact":
            traced.append((metadata_fn()["name"], payload_fn()))

    monkeypatch.setattr(torch._logging, "trace_structured", trace)
    model, x = Deep(), torch.randn(32, 64)
    gradients(model, compiled(model, memory_budget=0.0), x)
    payload = next(text for name, text in traced if name.startswith("autockpt"))
    shown = json.loads(payload)
    assert shown == json.loads(json.dumps(autockpt.decisions()[-1].to_json()))
    assert shown["peak_bytes"] <= shown["budget_bytes"]
    assert sum(shown["saved"].values()) == shown["saved_bytes"]


def test_the_name_is_known_to_dynamo_without_an_import_of_ours() -> None:
    assert "autockpt" in torch._dynamo.list_backends()


def test_no_warning_in_an_ordinary_run() -> None:
    model, x = Deep(), torch.randn(32, 64)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        gradients(model, compiled(model, memory_budget=0.3), x)


def same_as_eager(make: Callable[[], nn.Module], x: Tensor, budget: float = 0.0) -> None:
    """Two steps of each, buffers included, with no warning of ours."""

    def run(compile_it: bool) -> dict[str, Tensor]:
        torch.manual_seed(0)
        model = make()
        step = compiled(model, memory_budget=budget) if compile_it else model
        for _ in range(2):
            step(x.clone()).sum().backward()
        return {name: p.grad for name, p in model.named_parameters() if p.grad is not None} | dict(
            model.named_buffers()
        )

    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="autockpt")
        got = run(True)
    torch._dynamo.reset()
    expected = run(False)
    for name in expected:
        torch.testing.assert_close(got[name], expected[name], rtol=1e-5, atol=1e-6)


class WritesItsInput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x * 1.5).tanh()
        x.zero_()
        return y


class MovesItsTeacher(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.student = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))
        self.register_buffer("teacher", torch.randn(4, 16, 16) / 8)

    def forward(self, x: Tensor) -> Tensor:
        loss = torch.zeros(())
        for number, layer in enumerate(self.student):
            loss = loss + F.softplus(layer(x) * torch.tanh(x @ self.teacher[number])).sum()
        with torch.no_grad():
            self.teacher.mul_(0.5).add_(torch.stack([layer.weight.detach() for layer in self.student]) * 0.5)
        return loss


def batch_norms() -> nn.Module:
    layers = [layer for _ in range(6) for layer in (nn.Linear(64, 64), nn.BatchNorm1d(64), nn.GELU())]
    return nn.Sequential(*layers)


@pytest.mark.parametrize("make", [WritesItsInput, batch_norms])
def test_what_the_forward_overwrites_is_not_read_again(make: Callable[[], nn.Module]) -> None:
    same_as_eager(make, torch.randn(32, 64))


def test_a_buffer_that_moves_with_every_step_is_read_before_it_moves() -> None:
    same_as_eager(MovesItsTeacher, torch.randn(32, 16))


class Ordinary(nn.Module):
    """Things that once made the planner step aside."""

    def __init__(self, inner: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(self.linear(x)).cos()


@pytest.mark.parametrize(
    "inner",
    [
        lambda y: checkpoint(lambda z: F.dropout(torch.tanh(z), 0.0), y, use_reentrant=False),
        lambda y: F.scaled_dot_product_attention(y[None], y[None], y[None]),
        lambda y: F.rrelu(y, training=False).tanh(),
    ],
    ids=["checkpointed dropout", "attention of one tensor with itself", "rrelu"],
)
def test_ordinary_models_are_planned(inner: Callable[[Tensor], Tensor]) -> None:
    same_as_eager(lambda: Ordinary(inner), torch.randn(8, 16))


def test_sizes_that_depend_on_data_are_planned() -> None:
    weight = torch.randn(8, 8, requires_grad=True)

    def model(x: Tensor) -> Tensor:
        return torch.tanh((x @ weight)[x > 0]).exp().sum()

    x = torch.randn(16, 8)
    model(x).backward()
    expected, weight.grad = weight.grad, None
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True), warnings.catch_warnings():
        warnings.filterwarnings("error", message="autockpt")
        compiled(model, memory_budget=0.0)(x).backward()
    torch.testing.assert_close(weight.grad, expected)


def test_a_size_that_depends_on_data_is_planned_at_the_bound_that_the_user_states() -> None:
    weight, x = torch.randn(8, 8, requires_grad=True), torch.randn(4096, 8)

    def model(x: Tensor) -> Tensor:
        return torch.tanh((x @ weight)[x > 2.0]).exp().sum()

    def planned(limit: int) -> tuple[int, list[str]]:
        torch._dynamo.reset()
        compiled(model, memory_budget=1.0, max_unbacked=limit)(x).backward()
        made = autockpt.decisions()[-1]
        return made.peak_bytes, list(made.to_json()["sizes"]["data_dependent"].values())

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        (small, small_bounds), (large, large_bounds) = planned(2000), planned(30_000)
    assert small_bounds == ["2000 (max_unbacked)"]
    assert large_bounds == ["30000 (max_unbacked)"]
    assert large >= small + 28_000 * 4


def test_random_checkpointed_regions_keep_what_they_drew() -> None:
    weight = torch.randn(16, 16, requires_grad=True)

    def model(x: Tensor) -> Tensor:
        return checkpoint(lambda y: F.dropout(y @ weight, 0.5), x, use_reentrant=False)

    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="autockpt")
        x = torch.randn(8, 16)
        y = compiled(model, memory_budget=0.0)(x)
        y.sum().backward()
    right = x.T @ ((y.detach() != 0) * 2.0)
    torch.testing.assert_close(weight.grad, right)
