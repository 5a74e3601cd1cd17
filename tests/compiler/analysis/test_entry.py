"""`autockpt.analyze`: the plan that the backend would make, for any device, with nothing allocated."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

import autockpt
from autockpt.cost_models import load_profile
from autockpt.cost_models.profiles import profile_json
from autockpt.inductor.fake.cuda import fake_cuda_device
from autockpt.inductor.fake.cuda_library import NoFakeCuda, cuda_library
from autockpt.machine import cache_folder


class Layers(nn.Module):
    def __init__(self, width: int = 64, count: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.GELU()) for _ in range(count))
        self.back = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(count))

    def forward(self, x: Tensor) -> Tensor:
        for up, down in zip(self.layers, self.back, strict=True):
            x = x + down(up(x))
        return x.square().mean()


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(64, 192, dtype=torch.bfloat16)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).unflatten(2, (3, 4, 16)).permute(2, 0, 3, 1, 4).unbind(0)
        return F.scaled_dot_product_attention(query, key, value, is_causal=True).float().sum()


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x: Tensor) -> Tensor:
        x = self.one(x).relu()
        torch._dynamo.graph_break()
        return self.two(x).relu().sum()


def test_a_model_of_terabytes_is_planned_with_nothing_allocated() -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(2**19, 2**19, bias=False), nn.ReLU(), nn.Linear(2**19, 4))
        batch = torch.empty(2**10, 2**19)
    analysis = autockpt.analyze(model, batch, memory_budget="8000GiB")
    assert analysis.fits
    # A weight of a tebibyte and its gradient.
    assert 2 * 2**40 <= analysis.min_peak_bytes <= analysis.peak_bytes < 2.05 * 2**40
    assert analysis.report["memory"]["gradients"] >= 2**40


def test_the_analyzed_model_is_left_as_it_was() -> None:
    model, batch = Layers(), torch.randn(8, 64)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    autockpt.analyze(model, batch, memory_budget=0.5)
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())
    assert all(parameter.grad is None for parameter in model.parameters())
    torch.compile(model, backend="eager")(batch).backward()


def test_an_analysis_does_not_make_compiled_code_recompile() -> None:
    compiled = []

    def backend(gm: fx.GraphModule, _: object) -> Callable[..., object]:
        compiled.append(gm)
        return gm.forward

    model = Layers()
    step = torch.compile(model, backend=backend)
    step(torch.randn(8, 64))
    for batch in range(9, 12):
        autockpt.analyze(model, torch.randn(batch, 64), memory_budget=1.0)
    step(torch.randn(8, 64))
    assert len(compiled) == 1


def test_budgets_trade_peak_for_time_along_the_frontier() -> None:
    model, batch = Layers(), torch.randn(2048, 64)
    low, high = (autockpt.analyze(model, batch, memory_budget=budget) for budget in (0.0, 1.0))
    assert low.peak_bytes < high.peak_bytes <= high.fastest_bytes
    assert low.report["step_seconds"] > high.report["step_seconds"]
    peaks = [point["peak_bytes"] for point in low.frontier]
    assert peaks == sorted(peaks)
    assert (peaks[0], peaks[-1]) == (low.min_peak_bytes, low.fastest_bytes)
    assert [point["chosen"] for point in low.frontier].count(True) == 1


def test_live_bytes_by_kind_add_up_to_the_peak() -> None:
    report = autockpt.analyze(Layers(), torch.randn(2048, 64), memory_budget=0.3).report
    timeline = report["graphs"][0]["timeline"]
    totals = [sum(launch["bytes"]) for launch in timeline["launches"]]
    assert max(totals) == totals[timeline["peak"]] == report["peak_bytes"]
    assert sum(report["graphs"][0]["at_peak"]["by_kind"].values()) == report["peak_bytes"]


def test_every_tensor_has_a_reason_in_words() -> None:
    report = autockpt.analyze(Layers(), torch.randn(2048, 64), memory_budget=0.3).report
    tensors = report["graphs"][0]["tensors"]
    assert {tensor["decision"] for tensor in tensors} == {"saved", "recomputed"}
    assert all(len(tensor["reason"].split()) > 3 for tensor in tensors)
    assert any(tensor["module"].startswith("layers.") and tensor["line"] for tensor in tensors)


@pytest.mark.parametrize(("name", "copies"), [("AdamW", 2), ("sgd", 0), ("momentum", 1)])
def test_the_state_of_an_optimizer_counts(name: str, copies: int) -> None:
    model, batch = Layers(), torch.randn(8, 64)
    without = autockpt.analyze(model, batch, memory_budget=1.0)
    counted = autockpt.analyze(model, batch, memory_budget=1.0, optimizer=name)
    weights = sum(parameter.nbytes for parameter in model.parameters())
    # And a step counter for each parameter.
    assert 0 <= counted.peak_bytes - without.peak_bytes - copies * weights <= 4 * len(list(model.parameters()))


def test_a_budget_below_the_minimum_peak_does_not_fit() -> None:
    analysis = autockpt.analyze(Layers(), torch.randn(2048, 64), memory_budget="1MiB")
    assert not analysis.fits
    assert "does not fit" in str(analysis)


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.7, 1.0])
def test_a_fraction_of_a_step_in_several_graphs_fits(fraction: float) -> None:
    """The loss of GPT-2 in transformers is a graph of its own: its range is not that of the step."""
    report = autockpt.analyze(Broken(), torch.randn(4096, 32), memory_budget=fraction).report
    assert len(report["graphs"]) == 2
    assert report["fits"]
    assert report["min_peak_bytes"] <= report["peak_bytes"] <= report["budget_bytes"]


@pytest.mark.parametrize(
    ("budget", "limit"), [(0.3, "7.36 GiB"), (None, "7.36 GiB"), ("100%", "8.00 GiB"), ("2000GiB", "8.00 GiB")]
)
def test_a_step_that_is_larger_than_the_device_does_not_fit_it(tmp_path: Path, budget: Any, limit: str) -> None:
    """A fraction is a position between two peaks, both of which may be more than the device has."""
    small = replace(load_profile("cpu"), name="small-card", memory_bytes=8 * 2**30)
    profile = tmp_path / "small.json"
    profile.write_text(profile_json(small))
    with torch.device("meta"):
        model, batch = Layers(), torch.empty(2**22, 64)
    report = autockpt.analyze(model, batch, memory_budget=budget, device=str(profile)).report
    assert report["peak_bytes"] > 8 * 2**30
    assert not report["fits"]
    assert report["verdict"].startswith("It does not fit: the ")
    assert limit in report["verdict"]
    assert "small-card" in report["verdict"]


def test_graph_breaks_are_listed_and_their_graphs_summed() -> None:
    analysis = autockpt.analyze(Broken(), torch.randn(64, 32), memory_budget=1.0)
    report = analysis.report
    assert len(report["graphs"]) == 2
    assert report["breaks"][0]["count"] == 1
    assert "graph_break" in report["breaks"][0]["reason"]
    assert analysis.peak_bytes > max(graph["saved_bytes"] for graph in report["graphs"])
    assert len(analysis.plan.graphs) == 2


def test_a_saved_plan_is_forecast_in_the_place_of_planning(tmp_path: Path) -> None:
    model, batch = Layers(), torch.randn(2048, 64)
    low = autockpt.analyze(model, batch, memory_budget=0.0)
    low.plan.save(tmp_path / "plan.json")
    again = autockpt.analyze(model, batch, memory_budget=1.0, plan=str(tmp_path / "plan.json"))
    assert again.plan.graphs[0].plan == low.plan.graphs[0].plan
    with pytest.raises(autockpt.AutockptError, match="another graph"):
        autockpt.analyze(Layers(count=2), batch, memory_budget=1.0, plan=str(tmp_path / "plan.json"))


def test_the_report_is_json(tmp_path: Path) -> None:
    analysis = autockpt.analyze(Layers(), torch.randn(64, 64), memory_budget=0.5)
    analysis.save(str(tmp_path / "report.json"))
    assert json.loads((tmp_path / "report.json").read_text()) == analysis.report
    with pytest.raises(autockpt.AutockptError, match="saved as one of"):
        analysis.save(str(tmp_path / "report.docx"))


def _has_fake_cuda() -> bool:
    try:
        cuda_library(cache_folder())
    except NoFakeCuda:
        return False
    return not torch.cuda.is_available()


needs_fake_cuda = pytest.mark.skipif(not _has_fake_cuda(), reason="a fake CUDA device cannot be built here")


@needs_fake_cuda
@pytest.mark.parametrize(("device", "kernel"), [("h100", "flash"), ("t4", "efficient")])
def test_an_absent_gpu_is_traced_with_its_own_attention(device: str, kernel: str) -> None:
    model = Attention()
    report = autockpt.analyze(model, torch.randn(2, 32, 64, dtype=torch.bfloat16), device=device).report
    assert report["device"]["traced_as"] == "cuda"
    operators = {tensor["operator"] for tensor in report["graphs"][0]["tensors"]}
    names = {launch["operation"] for launch in report["graphs"][0]["timeline"]["launches"]} | operators
    assert any(f"_scaled_dot_product_{kernel}_attention" in name for name in names)


class Constants(nn.Module):
    """Makes small tensors from numbers inside its forward, as caches of keys and values do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        scale = torch.tensor([2.0], dtype=x.dtype, device=x.device)
        empty = torch.tensor([], dtype=x.dtype, device=x.device)
        rows = torch.tensor([0, 3], device=x.device)
        return torch.cat([empty, (self.layer(x) * scale).index_select(0, rows).flatten()]).square().sum()


@needs_fake_cuda
def test_tensors_that_a_model_makes_from_numbers_are_on_the_absent_gpu() -> None:
    found = autockpt.analyze(Constants(), torch.randn(16, 64), memory_budget=0.5, device="h100")
    assert found.fits


@needs_fake_cuda
def test_the_fake_device_is_removed_afterwards() -> None:
    built_for = torch.version.cuda
    with fake_cuda_device(load_profile("a100"), cache_folder()) as place:
        assert place.device.type == "cuda"
        assert torch.cuda.is_available()
        assert torch.version.cuda is not None
    assert not torch.cuda.is_available()
    assert torch.version.cuda == built_for
    with pytest.raises((RuntimeError, AssertionError)):
        torch.empty(1, device="cuda")
    weight = torch.randn(4, 4, requires_grad=True)
    (weight @ weight).sum().backward()
    assert weight.grad is not None
