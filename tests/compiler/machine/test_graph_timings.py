"""`cost="measured"`: each distinct operator call of a graph is timed once and cached, without side effects."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import autockpt
from autockpt import vouch
from autockpt.cost_models import load_profile
from autockpt.cost_models.calibration.stopwatch import KernelTiming
from autockpt.inductor.capture import capture_joints
from autockpt.machine import graph_timings, time_call
from autockpt.machine.cache import TimingCache
from autockpt.machine.graph_timings import time_graph
from autockpt.partition import Partitioner, Request
from autockpt.partition.record import GraphDecision
from autockpt.passes.graph.value import Kind
from autockpt.passes.problem.plan import Budget, Lowering, Setup


@torch.library.custom_op("autockpt_tests::ordered", mutates_args=())
def ordered(x: Tensor) -> Tensor:
    return torch.sort(x)[0]


@ordered.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


ordered.register_autograd(lambda context, gradient: gradient)


class Deep(nn.Module):
    def __init__(self, dropout: float = 0.0, custom: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
        self.dropout = nn.Dropout(dropout)
        self.last = ordered if custom else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + self.dropout(F.gelu(layer(x)))
        return self.last(x).square().mean()  # type: ignore[no-any-return]  # tensors in, a tensor out


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOCKPT_CACHE_DIR", str(tmp_path))


@pytest.fixture
def second_each(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every operator call takes a second; the device of each that is timed is added to the list."""
    timed: list[str] = []

    def time_kernel(run: Callable[[], object], device: str) -> KernelTiming:
        assert not any(isinstance(leaf, torch._subclasses.FakeTensor) for leaf in _leaves(run()))
        timed.append(device)
        return KernelTiming(1.0, 0.0, 1)

    monkeypatch.setattr(time_call, "time_kernel", time_kernel)
    return timed


def _leaves(result: object) -> list[Any]:
    return list(result) if isinstance(result, tuple | list) else [result]


def step(model: nn.Module, *inputs: Tensor, dynamic: bool = False, **options: Any) -> GraphDecision:
    """Compile and run one step; its decision is returned, its gradients are in the model."""
    torch._dynamo.reset()
    torch.manual_seed(7)
    model.zero_grad()
    options = {"lower": "eager", "memory_budget": 0.0, **options}
    torch.compile(model, backend="autockpt", options=options, dynamic=dynamic)(*inputs).backward()
    return autockpt.decisions()[-1]


def test_the_planner_uses_measured_seconds(second_each: list[str]) -> None:
    made = step(Deep(), torch.randn(8, 16), cost="measured")
    problem = made.decision.problem
    kernels = {v.name for v in problem.graph.values if v.kind in (Kind.EXTERN, Kind.POINTWISE, Kind.REDUCTION)}
    assert kernels == made.timings.seconds.keys()
    assert {name for name, seconds in problem.seconds.items() if seconds == 1.0} == kernels
    assert made.timings.left == ()


def test_each_operation_and_shape_is_timed_once_however_often_it_runs(second_each: list[str]) -> None:
    made = step(Deep(), torch.randn(8, 16), cost="measured")
    graph = made.decision.problem.graph
    operators = {graph.by_name[name].operator for name in made.timings.seconds}
    assert len(operators) <= made.timings.timed < len(made.timings.seconds)
    # Each is timed twice.
    assert second_each == ["cpu"] * 2 * made.timings.timed


def test_the_second_compilation_finds_the_timings_of_the_first(second_each: list[str]) -> None:
    first = step(Deep(), torch.randn(8, 16), cost="measured").timings
    second_each.clear()
    second = step(Deep(), torch.randn(8, 16), cost="measured").timings
    assert second_each == []
    assert (second.timed, second.cached, second.seconds) == (0, first.timed, first.seconds)


def test_another_shape_is_another_operation(second_each: list[str]) -> None:
    step(Deep(), torch.randn(8, 16), cost="measured")
    assert step(Deep(), torch.randn(9, 16), cost="measured").timings.timed > 0


def test_another_number_of_threads_is_another_device(second_each: list[str]) -> None:
    step(Deep(), torch.randn(8, 16), cost="measured")
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 1)
        assert step(Deep(), torch.randn(8, 16), cost="measured").timings.cached == 0
    finally:
        torch.set_num_threads(threads)


def test_gradients_random_state_and_modes_are_as_without_timing() -> None:
    model, x = Deep(dropout=0.5, custom=True), torch.randn(8, 16)
    step(model, x, device="a100-80gb")  # a device that is not here: nothing can be timed
    expected, state = [p.grad for p in model.parameters()], torch.get_rng_state()
    made = step(model, x, cost="measured")
    assert made.timings.timed > 0
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), expected, strict=True) if p.grad is not None)
    assert torch.is_grad_enabled()


def test_under_autocast_the_timed_operation_is_the_one_of_the_graph(second_each: list[str]) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        made = step(Deep(), torch.randn(8, 16), cost="measured")
    assert made.timings.left == ()
    assert torch.get_autocast_dtype("cpu") is torch.bfloat16


def test_symbolic_sizes_are_timed_at_their_hints(second_each: list[str]) -> None:
    made = step(Deep(), torch.randn(8, 16), cost="measured", dynamic=True)
    assert any(value.kind is Kind.SYMBOL for value in made.decision.problem.graph.values)
    assert made.timings.timed > 0
    assert made.timings.left == ()


def test_an_operator_that_raises_is_priced_by_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    def time_kernel(run: Any, device: str) -> KernelTiming:
        if run() is not None and "mm" in str(timed[-1]):
            raise RuntimeError("on purpose")
        return KernelTiming(1.0, 0.0, 1)

    timed: list[Any] = []
    real = time_call.time_call
    monkeypatch.setattr(time_call, "time_kernel", time_kernel)
    monkeypatch.setattr(graph_timings, "time_call", lambda c, end: timed.append(c.target) or real(c, end))  # type: ignore[func-returns-value]
    made = step(Deep(), torch.randn(8, 16), cost="measured")
    problem, timings = made.decision.problem, made.timings
    profiled = step(Deep(), torch.randn(8, 16)).decision.problem
    products = [value.name for value in problem.graph.values if "mm" in value.operator]
    assert timings.seconds
    assert [problem.seconds[name] for name in products] == [profiled.seconds[name] for name in products]
    assert "aten.mm.default: it raised RuntimeError: on purpose" in timings.left


@pytest.mark.parametrize(
    ("short_of", "reason"), [("time", "the time for timing was over"), ("memory", "half of the free memory")]
)
def test_without_time_or_memory_the_profile_prices(
    short_of: str, reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if short_of == "time":
        monkeypatch.setitem(graph_timings._LIMIT_SECONDS, "measured", -1.0)
    else:
        monkeypatch.setattr(time_call, "free_bytes", lambda device: 0)
    with caplog.at_level(logging.INFO, "autockpt"):
        made = step(Deep(), torch.randn(8, 16), cost="measured")
    assert made.timings.seconds == {}
    assert all(reason in left for left in made.timings.left)
    left = len(made.timings.left)
    assert re.search(rf"timed 0 operators in [\d.]+ s, 0 from cache, {left} left to the profile", caplog.text)
    assert made.decision.problem.seconds == step(Deep(), torch.randn(8, 16)).decision.problem.seconds


def test_an_operator_that_reads_indices_is_priced_by_the_profile(second_each: list[str]) -> None:
    class Table(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(10, 16)

        def forward(self, at: Tensor) -> Tensor:
            return self.table(at).square().mean()

    left = step(Table(), torch.arange(8), cost="measured").timings.left
    assert "aten.embedding.default: how long it takes depends on indices" in left


def test_the_default_times_only_operators_without_a_formula_and_names_them(
    second_each: list[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vouch, "_ALLOWED", {"autockpt_tests::ordered"})
    with caplog.at_level(logging.INFO, "autockpt"):
        made = step(Deep(custom=True), torch.randn(8, 16))
    (name,) = (v.name for v in made.decision.problem.graph.values if "ordered" in v.operator)
    assert made.timings.seconds == {name: 1.0}
    assert made.decision.problem.seconds[name] == 1.0
    assert made.estimated == {"autockpt_tests.ordered.default": "measured"}
    assert "; estimated, no formula: autockpt_tests.ordered.default (measured)" in caplog.text
    shown = made.to_json()
    assert shown["estimated"] == made.estimated
    assert shown["measured"] == {"timed": 1, "cached": 0, "left": []}


def test_an_operator_that_nobody_vouched_for_is_not_run_to_time_it(second_each: list[str]) -> None:
    made = step(Deep(custom=True), torch.randn(8, 16))
    assert second_each == []
    assert made.estimated == {"autockpt_tests.ordered.default": "by bytes"}
    assert "autockpt.allow_recompute" in made.timings.left[0]


def test_on_a_device_that_is_not_here_such_an_operator_is_priced_by_bytes_and_named(second_each: list[str]) -> None:
    made = step(Deep(custom=True), torch.randn(8, 16), device="a100-80gb")
    assert second_each == []
    assert made.estimated == {"autockpt_tests.ordered.default": "by bytes"}
    (name,) = (v.name for v in made.decision.problem.graph.values if "ordered" in v.operator)
    assert made.decision.problem.seconds[name] > 0


def test_where_all_operators_have_formulas_nothing_is_timed_or_reported(second_each: list[str]) -> None:
    made = step(Deep(), torch.randn(8, 16))
    assert second_each == []
    assert "estimated" not in str(made)


def test_with_inductor_fused_loops_are_priced_by_the_profile(second_each: list[str], tmp_path: Path) -> None:
    (captured,) = capture_joints(Deep(dropout=0.5), [torch.randn(8, 16)])
    graph = captured.graph
    setup = Setup(Budget(fraction=0.0), load_profile("cpu"), Lowering.INDUCTOR)
    made = time_graph(captured.runnable_calls, graph, setup, "measured", TimingCache(tmp_path))
    products = {value.name for value in graph.values if value.operator in ("aten.mm.default", "aten.addmm.default")}
    assert made.seconds == dict.fromkeys(products, 1.0)


def test_an_operator_that_mutates_inputs_is_not_timed(second_each: list[str]) -> None:
    model = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16))
    x = torch.randn(8, 16)
    made = step(nn.Sequential(model, Deep()), x, cost="measured")
    written = [value for value in made.decision.problem.graph.values if value.operator.endswith("copy_.default")]
    assert not {value.name for value in written} & made.timings.seconds.keys()
    assert model[1].num_batches_tracked == 1


def test_another_cost_is_another_key_of_inductors_caches(tmp_path: Path) -> None:
    setup = Setup(Budget(fraction=0.0), load_profile("cpu"))
    profile, measured, other_folder = (
        Partitioner(Request(setup, cost=cost, timings=folder), "error").key
        for cost, folder in (("profile", tmp_path), ("measured", tmp_path), ("measured", tmp_path / "other"))
    )
    assert profile != measured
    assert measured == other_folder
