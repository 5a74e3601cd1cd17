"""Steps of several graphs that offload: the device's peak, the host's bytes of all calls in flight, the gradients."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import autockpt
from autockpt.cost_models import load_profile
from autockpt.cost_models.profiles import profile_json
from autockpt.machine import live_bytes
from autockpt.measure import measure_peak
from autockpt.offload import drain, host_memory, slowed

CPU = torch.device("cpu")
MEMORY = host_memory("cpu")


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[None]:
    """Host memory and targets of copies are NaN before they are written, and copies are late."""
    torch._dynamo.reset()
    gc.collect()
    drain()
    MEMORY.poison = True
    with slowed(0.0005):
        yield
    drain()
    MEMORY.poison = False
    torch._dynamo.reset()
    gc.collect()


@pytest.fixture
def device(tmp_path: Path) -> str:
    """A profile of this CPU with a link so fast that copies are nearly free, but for tensors of less than 10 KB."""
    linked = replace(
        load_profile("cpu"),
        device_to_host_bytes_per_second=1e12,
        host_to_device_bytes_per_second=1e12,
        copy_latency_seconds=1e-8,
    )
    path = tmp_path / "linked.json"
    path.write_text(profile_json(linked))
    return str(path)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(Block(64), Block(64))


class Training:
    """A model of two graphs; the loss is eager."""

    def __init__(self, budget: int | float, **options: Any) -> None:
        self.model = model()
        self.data = torch.randn(256, 64)
        for block in self.model:
            block.compile(backend="autockpt", options={"memory_budget": budget, "lower": "eager", **options})

    def step(self) -> None:
        self.model(self.data).square().mean().backward()
        self.model.zero_grad()

    def peak(self) -> int:
        gc.collect()
        before = live_bytes(CPU).now()
        return before + measure_peak(self.step, CPU)

    def gradients(self) -> list[Tensor]:
        self.model(self.data).square().mean().backward()
        return [p.grad.clone() for p in self.model.parameters() if p.grad is not None]


def eager_gradients(data: Tensor) -> list[Tensor]:
    plain = model()
    plain(data).square().mean().backward()
    return [p.grad for p in plain.parameters() if p.grad is not None]


def made() -> autockpt.StepDecision:
    found = autockpt.step_decision()
    assert found is not None
    return found


@pytest.mark.parametrize("fraction", [0.0, 0.4])
def test_two_graphs_offload_within_the_budget_and_gradients_are_those_of_eager(device: str, fraction: float) -> None:
    training = Training(fraction, offload="1GiB", device=device)
    training.step()
    training.step()
    peaks = [training.peak() for _ in range(3)]

    assert len(made().calls) == 2
    assert sum(call.host_bytes for call in made().calls) > 0
    assert max(peaks) <= made().budget_bytes
    for found, expected in zip(training.gradients(), eager_gradients(training.data), strict=True):
        assert torch.equal(found, expected)


def test_a_step_that_offloads_needs_less_of_the_device_in_less_time(device: str) -> None:
    """Both at the minimum peak of the step."""
    found = []
    for options in ({}, {"offload": "1GiB"}):
        torch._dynamo.reset()
        training = Training(0.0, device=device, **options)
        training.step()
        training.step()
        assert training.peak() <= made().budget_bytes
        found.append(made())
        del training
        gc.collect()
    without, offloading = found

    assert sum(call.host_bytes for call in without.calls) == 0
    assert offloading.budget_bytes < without.budget_bytes
    assert offloading.step_seconds < without.step_seconds


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_the_calls_in_flight_share_what_may_be_offloaded(device: str, share: float) -> None:
    """With less than the step would like to offload, it stays below that, and the host is empty after the step."""
    free = Training(0.0, offload="1GiB", device=device)
    free.step()
    free.step()
    wanted = sum(call.host_bytes for call in made().calls)
    torch._dynamo.reset()
    del free
    gc.collect()
    cap = int(wanted * share) // 1024 * 1024
    training = Training(0.0, offload=f"{cap // 1024}KiB", device=device)
    training.step()
    training.step()
    output = training.model(training.data)
    drain()
    most = MEMORY.taken_bytes
    # Tensors of whole pages: the host rounds up to these.
    assert 0 < most <= cap
    assert sum(call.host_bytes for call in made().calls) == most
    output.square().mean().backward()
    del output
    gc.collect()
    drain()
    assert MEMORY.taken_bytes == 0
