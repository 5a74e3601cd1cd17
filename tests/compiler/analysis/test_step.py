"""A step of several calls is one peak and one verdict: graph breaks, compiled blocks, a loss outside, micro-batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import autockpt
from autockpt.inductor import NOT_COMPILED, from_factory, from_model, trace
from autockpt.render import peak_launch, step_launches

WIDTH, VOCABULARY = 32, 512
CPU = torch.device("cpu")


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(x)))


class Model(nn.Module):
    def __init__(self, blocks: int = 4) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return x.square().mean()


class Broken(Model):
    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks[1](self.blocks[0](self.first(x)))
        torch._dynamo.graph_break()
        return self.blocks[3](self.blocks[2](x)).square().mean()


def by_blocks(blocks: int = 4, wrapped: bool = False) -> Model:
    model = Model(blocks)
    for number, block in enumerate(model.blocks):
        if wrapped:
            model.blocks[number] = torch.compile(block, backend="autockpt")  # type: ignore[assignment]  # a module, too
        else:
            block.compile(backend="autockpt")
    return model


def loss_outside() -> tuple[Any, tuple[Tensor, Tensor]]:
    compiled = torch.compile(nn.Sequential(Block(), nn.Linear(WIDTH, VOCABULARY)), backend="autockpt")

    def step(x: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(compiled(x), targets)

    return step, (torch.randn(64, WIDTH), torch.randint(0, VOCABULARY, (64,)))


def batch() -> Tensor:
    return torch.randn(256, WIDTH)


@pytest.mark.parametrize("wrapped", [False, True])
def test_blocks_compiled_one_by_one_are_calls_in_order(wrapped: bool) -> None:
    found: list[int] = []
    traced = trace(from_model(by_blocks(wrapped=wrapped), (batch(),), {}, CPU), lambda joint: found.append(1))

    (step,) = traced.micro_batches
    calls = [call for call in step.calls if call.graph != NOT_COMPILED]
    order = [(one.call, one.in_backward) for one in step.passes if step.calls[one.call].graph != NOT_COMPILED]
    assert not traced.failure
    assert len(found) == 1
    assert [call.graph for call in calls] == [0, 0, 0, 0]
    assert [in_backward for _, in_backward in order] == [False] * 4 + [True] * 4
    backwards = [call for call, in_backward in order if in_backward]
    assert backwards == sorted(backwards, reverse=True)


def test_gradients_are_outside_from_the_backward_that_makes_them_and_from_the_start_of_the_second_micro_batch() -> None:
    traced = trace(from_model(by_blocks(), (batch(),), {}, CPU), lambda joint: None, accumulate=4)

    first, second = traced.micro_batches
    gradients = [one.outside["gradients"] for one in first.passes]
    every = sum(parameter.nbytes for parameter in Model().parameters())
    assert gradients[0] == 0
    assert gradients == sorted(gradients)
    assert gradients[-1] == every
    assert {one.outside["gradients"] for one in second.passes} == {every}


def test_the_loss_outside_is_counted_with_what_eager_autograd_saves() -> None:
    said: list[str] = []
    traced = trace(from_factory(loss_outside, {}, CPU), lambda joint: None, progress=said.append)

    assert [text.split()[0] for text in said] == ["tracing", "running"]

    (step,) = traced.micro_batches
    logits = 64 * VOCABULARY * 4
    eager = [one.outside["between graphs"] for one in step.passes if step.calls[one.call].graph == NOT_COMPILED]
    assert [call.graph for call in step.calls if call.graph != NOT_COMPILED] == [0]
    # In the backward of the loss: saved log-probabilities, and gradients of these and of the logits.
    assert max(eager) >= 3 * logits


@pytest.mark.parametrize("model", [by_blocks, lambda: Broken()])
def test_a_fraction_is_a_position_in_the_range_of_the_step(model: Any) -> None:
    found = {fraction: autockpt.analyze(model(), batch(), memory_budget=fraction) for fraction in (0.0, 0.3, 1.0)}

    low, middle, high = found[0.0], found[0.3], found[1.0]
    assert all(analysis.fits for analysis in found.values())
    assert low.peak_bytes == low.min_peak_bytes == middle.min_peak_bytes
    assert high.peak_bytes == high.fastest_bytes == middle.fastest_bytes
    assert low.peak_bytes < middle.peak_bytes <= middle.report["budget_bytes"] < high.peak_bytes
    assert low.report["step_seconds"] >= middle.report["step_seconds"] >= high.report["step_seconds"]


@pytest.mark.parametrize("settings", [{}, {"accumulate": 3}, {"accumulate": 2, "optimizer": "adamw"}])
def test_the_timeline_of_the_step_peaks_where_the_plan_says(settings: dict[str, Any]) -> None:
    analysis = autockpt.analyze(by_blocks(), batch(), memory_budget=0.3, **settings)

    worst = peak_launch(step_launches(analysis.report))
    assert worst is not None
    assert worst.live_bytes == analysis.peak_bytes
    assert len(analysis.report["step"]["calls"]) >= 4 * settings.get("accumulate", 1)
    assert str(analysis)


def test_micro_batches_and_the_optimizer_raise_the_minimum_peak_by_what_they_hold() -> None:
    alone = autockpt.analyze(Model(), batch(), memory_budget=0.0)
    twice = autockpt.analyze(Model(), batch(), memory_budget=0.0, accumulate=2)
    many = autockpt.analyze(Model(), batch(), memory_budget=0.0, accumulate=8)
    adam = autockpt.analyze(Model(), batch(), memory_budget=0.0, accumulate=8, optimizer="adamw")

    parameters = sum(parameter.nbytes for parameter in Model().parameters())
    assert alone.min_peak_bytes < twice.min_peak_bytes == many.min_peak_bytes
    assert twice.min_peak_bytes <= alone.min_peak_bytes + 2 * parameters
    assert adam.min_peak_bytes == many.min_peak_bytes + adam.report["memory"]["optimizer"]
    # The first micro-batch has no gradients beside it, so that it recomputes less than the others.
    assert many.report["step_seconds"] >= 4 * twice.report["step_seconds"]


def test_a_budget_below_the_minimum_peak_is_one_verdict_about_the_whole_step() -> None:
    least = autockpt.analyze(by_blocks(), batch(), memory_budget=0.0).min_peak_bytes

    fits, over = (autockpt.analyze(by_blocks(), batch(), memory_budget=least + more) for more in (0, -1))

    assert fits.fits
    assert not over.fits
    assert over.peak_bytes == least
    assert "whole step" in over.report["verdict"]


def test_the_compiled_blocks_of_the_user_are_left_as_they_were() -> None:
    model = by_blocks()
    before = [block._compiled_call_impl for block in model.blocks]
    autockpt.analyze(model, batch(), memory_budget=0.5)

    assert [block._compiled_call_impl for block in model.blocks] == before
    assert all(parameter.grad is None for parameter in model.parameters())


def test_no_micro_batch_is_refused() -> None:
    with pytest.raises(autockpt.AutockptError, match="at least one micro-batch"):
        autockpt.analyze(Model(), batch(), accumulate=0)


class Reading(nn.Module):
    """Reads a value of what its first layer computes, so that Dynamo breaks the graph there."""

    def __init__(self, read: Any) -> None:
        super().__init__()
        self.first, self.last, self.read = Block(), Block(), read

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.read(self.first(x))).square().mean()


def logged(x: Tensor) -> Tensor:
    return x / (1.0 + 0.0 * x.mean().item())


def guarded(x: Tensor) -> Tensor:
    if x.isnan().any():
        raise ValueError("not a number")
    return x


def masked(x: Tensor) -> Tensor:
    return x * x[x > 0].mean()


def sliced(x: Tensor) -> Tensor:
    return x[: int(x.argmax()) + 1].sum(0, keepdim=True)


@pytest.mark.parametrize(
    ("read", "assumed"),
    [
        (logged, "assumed to be 1.0"),
        (guarded, "assumed to be False"),
        (masked, f"as many elements as there are, {4 * WIDTH}, are assumed"),
    ],
)
def test_values_read_between_graphs_are_assumed_and_the_report_says_where(read: Any, assumed: str) -> None:
    report = autockpt.analyze(Reading(read), torch.randn(4, WIDTH), memory_budget=0.5).report
    (said,) = report["device"]["approximations"]
    assert assumed in said
    assert f"{__file__}:{read.__code__.co_firstlineno + 1}: " in said
    assert len(report["graphs"]) > 1


def test_an_integer_read_between_graphs_is_refused_with_its_line() -> None:
    with pytest.raises(autockpt.AutockptError, match=r"sizes or positions may depend.*test_step\.py:\d+: return x\["):
        autockpt.analyze(Reading(sliced), torch.randn(4, WIDTH))


def test_a_gpu_that_is_not_here_runs_a_backward_in_a_process_that_ran_one_before() -> None:
    """Autograd counts devices once, in its first backward, and has no thread for one that comes later."""
    Model()(batch()).backward()

    found = autockpt.analyze(Broken(), batch(), device="h100", memory_budget=0.5)

    assert len(found.report["graphs"]) == 2
    assert not [one for one in found.report["device"]["approximations"] if "did not run" in one]
    assert found.report["step"] is not None
    Model()(batch()).backward()
