"""Real steps of compiled models with copies: the device's peak, the host's bytes and the gradients."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import autockpt
from autockpt.cost_models import DeviceProfile, load_profile
from autockpt.cost_models.profiles import profile_json
from autockpt.machine import live_bytes
from autockpt.offload import drain, host_memory, slowed
from autockpt.offload.transfers import transfers
from autockpt.partition import GraphDecision

CPU = torch.device("cpu")
MEMORY = host_memory("cpu")
Step = Callable[[], torch.Tensor]


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[None]:
    """Host memory and targets of copies are NaN before they are written, and copies are late."""
    torch._dynamo.reset()
    # Steps of other tests may have left tensors on the host, in cycles.
    gc.collect()
    drain()
    torch.manual_seed(0)
    MEMORY.poison = True
    with slowed(0.001):
        yield
    drain()
    MEMORY.poison = False


def with_link(bytes_per_second: float) -> DeviceProfile:
    return replace(
        load_profile("cpu"),
        device_to_host_bytes_per_second=bytes_per_second,
        host_to_device_bytes_per_second=bytes_per_second,
    )


@pytest.fixture
def device(tmp_path: Path) -> str:
    """A profile of this CPU with a link so fast that copies are nearly free."""
    path = tmp_path / "linked.json"
    path.write_text(profile_json(with_link(1e12)))
    return str(path)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.out((q @ k.transpose(-1, -2)).softmax(-1) @ v)
        return x + self.mlp(x)


def transformer() -> tuple[nn.Module, torch.Tensor]:
    return nn.Sequential(*(Attention(16) for _ in range(2))), torch.randn(2, 64, 16)


def convolutions() -> tuple[nn.Module, torch.Tensor]:
    layers: list[nn.Module] = []
    for channels in (3, 16, 16):
        layers += [nn.Conv2d(channels, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*layers), torch.randn(4, 3, 16, 16)


def compiled(model: nn.Module, x: torch.Tensor, **options: Any) -> Step:
    """Planned from cuts, and what is moved from those: other generators have tests of their own."""

    def loss(x: torch.Tensor) -> torch.Tensor:
        return model(x).square().mean()

    run = torch.compile(loss, backend="autockpt", options={"planner": "min_cut", **options})
    return lambda: run(x)


def gradients(model: nn.Module, step: Step) -> list[torch.Tensor]:
    model.zero_grad()
    loss = step()
    loss.backward()
    return [loss.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)]


def made() -> GraphDecision:
    return autockpt.decisions()[-1]


def offloaded_bytes() -> int:
    graph = made().decision.problem.graph
    return sum(graph.bytes_of(name) for name in made().graph_plan.on_host)


@pytest.mark.parametrize(
    ("build", "fraction"),
    [*((transformer, fraction) for fraction in (0.0, 0.25, 0.5, 0.75)), (convolutions, 0.0), (convolutions, 0.5)],
)
def test_gradients_are_those_without_copies_at_every_budget(build: Any, fraction: float, device: str) -> None:
    model, x = build()
    expected = gradients(model, compiled(model, x, memory_budget=1.0, lower="eager"))
    step = compiled(model, x, memory_budget=fraction, lower="eager", device=device, offload=True)
    found = gradients(model, step)
    assert made().graph_plan.offloaded
    assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))


def test_the_device_holds_less_and_the_host_what_the_plan_says(device: str) -> None:
    counter = live_bytes(CPU)
    if not counter.exact:
        pytest.skip("no compiler: peaks are not seen")
    model, x = transformer()
    lowest = compiled(model, x, memory_budget=0.0, lower="eager")
    gradients(model, lowest)
    without = made().peak_bytes
    step = compiled(model, x, memory_budget=0.0, lower="eager", device=device, offload=True)
    gradients(model, step)
    assert made().peak_bytes < without
    before = counter.now()
    counter.restart_peak()
    loss = step()
    assert MEMORY.taken_bytes >= offloaded_bytes() > 0
    model.zero_grad()
    loss.backward()
    peak = counter.restart_peak() - before
    static = made().decision.problem.graph.graph_input_bytes
    assert peak <= made().peak_bytes - static
    del loss
    assert MEMORY.taken_bytes == 0


def test_the_host_cap_holds(device: str) -> None:
    model, x = transformer()
    step = compiled(model, x, memory_budget=0.0, lower="eager", device=device, offload="16KiB")
    gradients(model, step)
    assert 0 < offloaded_bytes() <= 16 * 2**10


def test_a_second_backward_reloads_again(device: str) -> None:
    model, x = transformer()
    with torch._functorch.config.patch(donated_buffer=False):
        step = compiled(model, x, memory_budget=0.0, lower="eager", device=device, offload=True)
        expected = gradients(model, step)[1:]
        model.zero_grad()
        loss = step()
        loss.backward(retain_graph=True)
        model.zero_grad()
        loss.backward()
    assert all(torch.equal(one, p.grad) for one, p in zip(expected, model.parameters(), strict=True))


def test_two_calls_in_flight_have_their_own_tensors(device: str) -> None:
    model, x = transformer()
    step = compiled(model, x, memory_budget=0.0, lower="eager", device=device, offload=True, scope="graph")
    expected = gradients(model, step)[1:]
    model.zero_grad()
    first, second = step(), step()
    second.backward()
    model.zero_grad()
    first.backward()
    assert all(torch.equal(one, p.grad) for one, p in zip(expected, model.parameters(), strict=True))


def test_an_exception_between_the_passes_leaves_nothing_on_the_host(device: str) -> None:
    model, x = transformer()
    step = compiled(model, x, memory_budget=0.0, lower="eager", device=device, offload=True)
    expected = gradients(model, step)
    with pytest.raises(ZeroDivisionError):
        _ = step() * (1 / 0)
    gc.collect()
    drain()
    assert (MEMORY.taken_bytes, transfers(CPU).under_way) == (0, 0)
    assert all(torch.equal(one, other) for one, other in zip(expected, gradients(model, step), strict=True))


def test_two_hundred_steps_take_the_same_memory(device: str) -> None:
    model, x = transformer()
    step = compiled(model, x, memory_budget=0.0, lower="eager", device=device, offload=True)
    with slowed(0.0):
        gradients(model, step)
        counter = live_bytes(CPU)
        mapped, live = MEMORY.mapped_bytes, counter.now()
        for _ in range(200):
            gradients(model, step)
    assert (MEMORY.mapped_bytes, MEMORY.taken_bytes) == (mapped, 0)
    assert counter.now() <= live


def test_the_blocks_of_a_plan_are_mapped_when_it_is_compiled(device: str) -> None:
    model, x = transformer()
    step = compiled(model, x, memory_budget=0.0, lower="eager", device=device, offload=True)
    loss = step()
    mapped = MEMORY.mapped_bytes
    del loss
    gradients(model, step)
    assert MEMORY.mapped_bytes == mapped


def test_the_plan_can_be_saved_and_used_again(device: str, tmp_path: Path) -> None:
    model, x = transformer()
    options = {"memory_budget": 0.0, "lower": "eager", "device": device, "offload": True}
    expected = gradients(model, compiled(model, x, **options))
    plan = made().graph_plan
    made().plan.save(tmp_path / "plan.json")
    found = gradients(model, compiled(model, x, **options, plan=str(tmp_path / "plan.json")))
    assert made().graph_plan == plan
    assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))


@pytest.mark.inductor
@pytest.mark.parametrize("build", [transformer, convolutions])
def test_inductor_runs_the_same_kernels_and_counts_what_a_step_takes(
    build: Any, device: str, two_threads: None
) -> None:
    """Two threads add up in another order where a copy keeps two reductions from becoming one kernel."""
    model, x = build()
    expected = gradients(model, compiled(model, x, memory_budget=1.0))
    step = compiled(model, x, memory_budget=0.2, device=device, offload=True)
    found = gradients(model, step)
    assert made().graph_plan.offloaded
    assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))
    assert made().dry_run is not None
    assert made().dry_run.host_bytes == offloaded_bytes()
    counter = live_bytes(CPU)
    if counter.exact:
        before = counter.now()
        counter.restart_peak()
        gradients(model, step)
        assert counter.restart_peak() - before <= made().budget_bytes
