"""One budget for the training step, however it is cut into graphs: with `lower="eager"`, on models of a few layers."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._functorch.config
from torch import Tensor, nn
from torch.nn import functional as F

import autockpt
from autockpt.machine import live_bytes
from autockpt.measure import measure_peak
from autockpt.step import ledger_of
from autockpt.step.optimizers import OptimizerStates

CPU = torch.device("cpu")
Step = Callable[[], Any]


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, layers: int = 4, width: int = 32, vocabulary: int = 64) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor, targets: Tensor | None = None) -> Tensor:
        x = self.token(tokens)
        for block in self.blocks:
            x = block(x)
        scores: Tensor = self.head(x)
        return scores if targets is None else F.cross_entropy(scores.flatten(0, 1), targets.flatten())


@pytest.fixture(autouse=True)
def nothing_left_over() -> Iterator[None]:
    gc.collect()
    yield
    torch._dynamo.reset()
    gc.collect()


def options(budget: int | float | str, **others: Any) -> dict[str, Any]:
    return {"backend": "autockpt", "options": {"memory_budget": budget, "lower": "eager", **others}}


def tokens(vocabulary: int = 64, batch: int = 8) -> Tensor:
    return torch.randint(0, vocabulary, (batch, 128))


def peaks(step: Step, steps: int = 3) -> list[int]:
    """Live bytes at the worst moment of each step, what was live before included."""
    found = []
    for _ in range(steps):
        gc.collect()
        before = live_bytes(CPU).now()
        found.append(before + measure_peak(step, CPU))
    return found


def gradients(model: nn.Module, step: Step, seed: int = 7) -> list[Tensor]:
    model.zero_grad()
    torch.manual_seed(seed)
    step()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def blocks_one_by_one(budget: int | float | str, **others: Any) -> tuple[Model, Step]:
    model = Model()
    for block in model.blocks:
        block.compile(**options(budget, **others))

    def step() -> Tensor:
        data = tokens()
        loss = model(data, data)
        loss.backward()
        return loss

    return model, step


def made() -> autockpt.StepDecision:
    found = autockpt.step_decision()
    assert found is not None
    return found


def forget(model: nn.Module, step: Step) -> Step:
    def run() -> None:
        step()
        model.zero_grad(set_to_none=True)

    return run


@pytest.mark.parametrize("budget", [0.0, 0.4])
def test_blocks_compiled_one_by_one_share_one_budget(budget: float) -> None:
    model, step = blocks_one_by_one(budget)
    measured = peaks(forget(model, step))
    assert max(measured[1:]) <= made().budget_bytes
    assert max(measured[1:]) == pytest.approx(made().peak_bytes, rel=0.03)
    assert len(made().calls) == 4
    assert len(made().graphs) <= 2


def test_an_absolute_budget_holds_for_blocks_from_the_first_step_on_and_is_used() -> None:
    model, step = blocks_one_by_one(0.0)
    peaks(forget(model, step))
    lowest = made().peak_bytes
    torch._dynamo.reset()
    model, step = blocks_one_by_one(1.0)
    peaks(forget(model, step))
    budget = (lowest + made().peak_bytes) // 2
    del model, step
    torch._dynamo.reset()
    gc.collect()
    model, step = blocks_one_by_one(budget)
    measured = peaks(forget(model, step))
    assert max(measured) <= budget
    assert max(measured[2:]) >= 0.85 * budget


def test_gradients_are_eagers_in_every_step() -> None:
    torch.manual_seed(0)
    model, step = blocks_one_by_one(0.3)
    plain = Model()
    plain.load_state_dict(model.state_dict())

    def reference() -> None:
        data = tokens()
        plain(data, data).backward()

    for seed in range(4):
        pairs = zip(gradients(model, step, seed), gradients(plain, reference, seed), strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)


def test_two_models_with_fractions_of_their_own_do_not_share_a_budget() -> None:
    inputs = tokens()
    trained = []
    for budget in (0.0, 1.0):
        model = Model()
        trained.append((torch.compile(model, **options(budget)), torch.optim.AdamW(model.parameters())))
    for _ in range(3):
        for step, optimizer in trained:
            step(inputs, inputs).backward()
            optimizer.step()
            optimizer.zero_grad()
    lean, fast = sorted(autockpt.decisions()[-2:], key=lambda decision: decision.peak_bytes)
    assert lean.peak_bytes == lean.min_peak_bytes
    assert fast.peak_bytes > fast.min_peak_bytes


def test_a_loss_outside_of_the_graph_counts() -> None:
    model, vocabulary = Model(vocabulary=2048), 2048

    def trained(budget: int | float) -> list[int]:
        torch._dynamo.reset()
        forward = torch.compile(model, **options(budget))

        def step() -> None:
            data = tokens(vocabulary)
            F.cross_entropy(forward(data).flatten(0, 1), data.flatten()).backward()
            model.zero_grad(set_to_none=True)

        return peaks(step)

    plain = max(trained(1.0))
    lowest = max(trained(0.0))
    assert lowest < 0.95 * plain
    budget = (lowest + plain) // 2
    measured = trained(budget)
    assert max(measured) <= budget
    assert measured[-1] >= 0.9 * budget


def test_a_model_that_is_called_twice_before_one_loss_is_within_the_budget_from_the_first_step_on() -> None:
    """Two views of a batch, compared with each other: nothing in the first call shows that another one follows."""
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.Linear(512, 64)) for _ in range(4)))

    def trained(budget: int | float) -> list[int]:
        torch._dynamo.reset()
        forward = torch.compile(model, **options(budget))

        def step() -> None:
            one, other = forward(torch.randn(256, 64)), forward(torch.randn(256, 64))
            F.cross_entropy(one @ other.T, torch.arange(256)).backward()
            model.zero_grad(set_to_none=True)

        return peaks(step, steps=4)

    budget = (max(trained(0.0)) + max(trained(1.0))) // 2
    measured = trained(budget)
    assert max(measured) <= budget
    assert measured[-1] >= 0.9 * budget


def test_accumulated_gradients_and_optimizer_state_come_off_the_budget() -> None:
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    compiled_before = len(autockpt.decisions())

    def trained(budget: int | float) -> list[int]:
        torch._dynamo.reset()
        forward = torch.compile(model, **options(budget))

        def step() -> None:
            for _ in range(3):
                data = tokens()
                forward(data, data).backward()
            optimizer.step()
            optimizer.zero_grad()

        return peaks(step)

    high, low = max(trained(1.0)), max(trained(0.0))
    budget = (2 * low + high) // 3
    measured = max(trained(budget))
    assert measured <= budget
    assert made().peak_bytes == pytest.approx(measured, rel=0.03)
    assert len(autockpt.decisions()) > compiled_before


def test_the_state_of_an_optimizer_is_predicted_before_its_first_step() -> None:
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    forward = torch.compile(model, **options("64MiB"))
    compiled_before = len(autockpt.decisions())
    for _ in range(3):
        data = tokens()
        forward(data, data).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert len(autockpt.decisions()) == compiled_before + 1
    states = ledger_of(CPU).optimizers
    assert states.existing_bytes == states.expected_bytes >= 2 * sum(p.nbytes for p in model.parameters())


class Wrapper(torch.optim.Optimizer):
    """As accelerate's: it has no state of its own, and its `step` is none that torch would report."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    @property
    def param_groups(self) -> Any:  # type: ignore[override]
        return self.optimizer.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        return self.optimizer.state


def test_a_wrapped_optimizer_is_counted_once_and_not_waited_for() -> None:
    model = nn.Linear(8, 8)
    wrapper = Wrapper(torch.optim.AdamW(model.parameters()))
    states = OptimizerStates(CPU)
    states.find()
    model(torch.ones(1, 8)).sum().backward()
    wrapper.optimizer.step()
    assert states.count == 1
    assert not states.waiting


def test_a_step_that_fits_nowhere_says_what_is_outside_by_kind_and_what_the_graphs_need() -> None:
    model, step = blocks_one_by_one(0.0)
    peaks(forget(model, step), 2)
    torch._dynamo.reset()
    budget = made().peak_bytes - 2**17
    model, step = blocks_one_by_one(budget)
    step()
    model.zero_grad()
    with pytest.raises(autockpt.BudgetError, match="no plan of the step fits") as caught:
        step()
    for word in ("parameters", "other tensors", "need at least", "raise memory_budget"):
        assert word in str(caught.value)
    assert caught.value.budget_bytes == budget < caught.value.min_peak_bytes


def test_a_forward_without_backward_is_no_longer_in_flight_when_its_outputs_die() -> None:
    model, step = blocks_one_by_one(0.3)
    for _ in range(3):
        step()
    data = tokens()
    loss = model(data, data)
    assert ledger_of(CPU).calls_in_flight == 4
    del loss
    assert ledger_of(CPU).calls_in_flight == 0
    with torch.no_grad():
        model(data, data)
    assert ledger_of(CPU).calls_in_flight == 0


def test_an_exception_between_forward_and_backward_leaves_nothing_behind() -> None:
    model, step = blocks_one_by_one(0.3)

    def broken() -> None:
        data = tokens()
        loss = model(data, data)
        raise KeyError(float(loss))

    for _ in range(3):
        step()
        with pytest.raises(KeyError):
            broken()
    gc.collect()
    assert ledger_of(CPU).calls_in_flight == 0


@torch._functorch.config.patch(donated_buffer=False)  # or torch refuses `retain_graph`
def test_several_backwards_of_one_forward_give_the_same_gradients_and_end_the_call_once() -> None:
    torch.manual_seed(0)
    model, step = blocks_one_by_one(0.3)
    for _ in range(2):
        step()
    model.zero_grad()
    data = tokens()
    loss = model(data, data)
    loss.backward(retain_graph=True)
    assert ledger_of(CPU).calls_in_flight == 4
    once = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    loss.backward()
    assert ledger_of(CPU).calls_in_flight == 0
    twice = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(torch.allclose(2 * one, other) for one, other in zip(once, twice, strict=True))


def test_another_batch_size_runs_safely_at_first_and_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    # Planning would wait for the optimizers of other tests.
    monkeypatch.setattr(ledger_of(CPU), "optimizers", OptimizerStates(CPU))
    monkeypatch.setattr(OptimizerStates, "find", lambda _: None)
    model = Model()
    for block in model.blocks:
        block.compile(dynamic=False, **options(0.5))

    def step(batch: int) -> None:
        data = tokens(batch=batch)
        model(data, data).backward()
        model.zero_grad()

    for batch in (8, 8, 8, 4, 4, 8, 4, 8):
        step(batch)
    assert {call.phase for call in made().calls} == {1, 2}
    compiled = len(autockpt.decisions())
    for batch in (8, 4, 4, 8):
        step(batch)
    assert len(autockpt.decisions()) == compiled


def test_a_failure_of_ours_never_ends_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model, step = blocks_one_by_one(0.3)
    expected = gradients(model, step)
    ledger = ledger_of(CPU)

    def fail(*_: Any) -> None:
        raise KeyError("on purpose")

    monkeypatch.setattr("autockpt.step.replan.StepSolver.solve", fail)
    try:
        with pytest.warns(RuntimeWarning, match="could not plan the step as a whole"):
            got = gradients(model, step)
        assert all(torch.equal(one, other) for one, other in zip(expected, got, strict=True))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            gradients(model, step)
    finally:
        ledger.is_open = True


def test_compiled_functions_that_are_gone_leave_nothing_in_the_ledger() -> None:
    model, step = blocks_one_by_one(0.3)
    for _ in range(3):
        step()
    first = made().calls[0].graph
    del model, step
    torch._dynamo.reset()
    gc.collect()
    _, step = blocks_one_by_one(0.3)
    for _ in range(3):
        step()
    assert made().calls[0].graph != first
    assert len(ledger_of(CPU).planner._observed) == 1
    old = next(one for one in autockpt.decisions() if one.name == first)
    with pytest.raises(autockpt.AutockptError, match="no longer compiled"):
        _ = old.plan


def test_a_dynamic_size_above_the_traced_one_is_planned_for_as_it_is() -> None:
    """Dynamo traces the second size that it meets, and calls the same graph with the first one later."""
    layers = [nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 64), nn.GELU()]
    model = nn.Sequential(*layers, nn.Linear(64, 10))
    budget_bytes = live_bytes(CPU).now() + int(9.1 * 2**20)
    compiled = torch.compile(model, **options(budget_bytes))

    def step(batch: int) -> None:
        compiled(torch.randn(batch, 64)).logsumexp(-1).mean().backward()

    peaks = []
    for batch in (2048, 1024, 2048, 1024, 2048, 1024, 2048):
        model.zero_grad()
        peaks.append(live_bytes(CPU).now() + measure_peak(lambda batch=batch: step(batch), CPU))
    assert max(peaks) <= budget_bytes
    assert peaks[-1] >= 0.9 * budget_bytes
