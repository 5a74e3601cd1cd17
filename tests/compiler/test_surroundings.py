"""What surrounds a compiled step: threads, fork, copies, a reset, compiled autograd, a second derivative.

Right, or the same error that plain torch.compile gives.
"""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

PLAN = {"lower": "eager", "memory_budget": 0.0}


def tower(width: int = 32, dropout: float = 0.2) -> nn.Module:
    torch.manual_seed(width)
    layers = [nn.Linear(width, width), nn.GELU(), nn.Dropout(dropout), nn.Linear(width, width), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(width, width))


def planned(model: nn.Module, **options: Any) -> Any:
    return torch.compile(model, backend="autockpt", options={**PLAN, **options})


def gradients(model: nn.Module, forward: Callable[[Tensor], Tensor], x: Tensor) -> list[Tensor]:
    model.zero_grad()
    torch.manual_seed(3)
    forward(x).square().sum().backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def assert_equal(one: list[Tensor], other: list[Tensor]) -> None:
    assert len(one) == len(other) > 0
    assert all(map(torch.equal, one, other))


def saved_and_loaded(compiled: Any) -> Any:
    stream = io.BytesIO()
    torch.save(compiled, stream)
    stream.seek(0)
    return torch.load(stream, weights_only=False)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda compiled: pickle.loads(pickle.dumps(compiled)), saved_and_loaded]
)
def test_a_copy_of_a_compiled_module_has_parameters_of_its_own_and_the_same_gradients(
    copied: Callable[[Any], Any],
) -> None:
    model, x = tower(), torch.randn(8, 32)
    expected = gradients(model, model, x)
    compiled = planned(model)
    assert_equal(gradients(model, compiled, x), expected)
    other = copied(compiled)
    assert next(other.parameters()).data_ptr() != next(model.parameters()).data_ptr()
    assert_equal(gradients(other, other, x), expected)


def test_after_a_reset_the_step_is_planned_again() -> None:
    model, x = tower(), torch.randn(8, 32)
    compiled = planned(model)
    expected = gradients(model, compiled, x)
    torch.compiler.reset()
    assert_equal(gradients(model, compiled, x), expected)


def test_compiled_autograd_runs_planned_backwards() -> None:
    model, x = tower(), torch.randn(8, 32)
    expected = gradients(model, model, x)
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="aot_eager")):
        assert_equal(gradients(model, planned(model), x), expected)


def message_of(run: Callable[[Any], object], compiled: Any) -> str:
    with pytest.raises(RuntimeError) as caught:
        run(compiled)
    return str(caught.value)


def second_derivative(compiled: Any) -> None:
    x = torch.randn(8, 32, requires_grad=True)
    (gradient,) = torch.autograd.grad(compiled(x).square().sum(), x, create_graph=True)
    gradient.square().sum().backward()


def second_backward(compiled: Any) -> None:
    """After a step that let the backward overwrite what was saved."""
    compiled(torch.randn(8, 32)).square().sum().backward()
    loss = compiled(torch.randn(8, 32)).square().sum()
    loss.backward(retain_graph=True)
    loss.backward()


@pytest.mark.parametrize("run", [second_derivative, second_backward])
def test_what_torch_compile_refuses_is_refused_with_the_same_words(run: Callable[[Any], object]) -> None:
    ours = message_of(run, planned(tower()))
    torch.compiler.reset()
    assert ours == message_of(run, torch.compile(tower(), backend="aot_eager"))


def test_the_graph_may_be_retained_from_the_first_step_on() -> None:
    model, x = tower(), torch.randn(8, 32)
    expected = gradients(model, model, x)
    model.zero_grad()
    torch.manual_seed(3)
    loss = planned(model)(x).square().sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert_equal([p.grad for p in model.parameters() if p.grad is not None], [2 * one for one in expected])


def train_at_once(compiled: Callable[[nn.Module], Any]) -> None:
    """Two models, each compiled and trained in a thread of its own, beside the same models in eager mode."""
    models = {width: tower(width, dropout=0.0) for width in (24, 40)}
    inputs = {width: torch.randn(8, width) for width in models}
    found: dict[int, Any] = {}

    def train(width: int) -> None:
        try:
            forward = compiled(models[width])
            for _ in range(3):
                models[width].zero_grad()
                forward(inputs[width]).square().sum().backward()
            found[width] = [p.grad.clone() for p in models[width].parameters() if p.grad is not None]
        except Exception as error:
            found[width] = error

    threads = [threading.Thread(target=train, args=(width,)) for width in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for width, model in models.items():
        assert not isinstance(found[width], Exception), found[width]
        expected = gradients(model, model, inputs[width])
        for one, other in zip(found[width], expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_two_threads_compile_and_train_at_once() -> None:
    train_at_once(planned)


@pytest.mark.inductor
def test_two_threads_compile_and_train_at_once_by_inductor() -> None:
    train_at_once(lambda model: planned(model, lower="inductor"))


FORK = """
import os, sys, torch
from torch import nn
torch.set_num_threads(1)  # a pool of threads does not survive a fork, with or without torch.compile

def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.2), nn.Linear(32, 16))

def gradients(model, forward, x):
    torch.manual_seed(3)
    model.zero_grad()
    forward(x).square().sum().backward()
    return [p.grad.clone() for p in model.parameters()]

def planned(model):
    return torch.compile(model, backend="autockpt", options={"lower": "eager", "memory_budget": 0.0})

x, model = torch.ones(8, 16), make()
compiled = planned(model)
expected = gradients(model, compiled, x)
child = os.fork()
if child == 0:
    other = make()
    old = all(map(torch.equal, gradients(model, compiled, x), expected))
    new = all(map(torch.equal, gradients(other, planned(other), x), expected))
    os._exit(0 if old and new else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_runs_what_was_compiled_before_and_compiles_anew() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
