"""Small tensors that a constructor computes keep their values; all others stay unknown, and reading them is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.associative_scan import associative_scan_op
from torch._higher_order_ops.cond import cond_op
from torch._subclasses import FakeTensor, FakeTensorMode

from autockpt.cost_models import load_profile
from autockpt.errors import AutockptError
from autockpt.inductor.fake.cuda import fake_cuda_device
from autockpt.inductor.fake.cuda_library import NoFakeCuda, cuda_library
from autockpt.inductor.fake.known_values import KnownValues, StepMode
from autockpt.inductor.fake.step import from_factory
from autockpt.machine import cache_folder

CPU = torch.device("cpu")


def drop_path_rates() -> Any:
    return [part.tolist() for part in torch.linspace(0, 0.1, 12).split([3, 9])]


def written_to() -> Any:
    table = torch.zeros(4)
    table[1:3].add_(torch.arange(2.0) + 1)
    return table.tolist()


def selected() -> Any:
    steps = torch.arange(6)
    return steps[steps % 2 == 1].tolist(), len(torch.nonzero(steps > 2))


def number() -> Any:
    return torch.tensor([2.0, 3.0]).prod().item(), bool(torch.ones(3).eq(1).all())


def offsets() -> Any:
    return (torch.cumsum(torch.tensor([4, 5, 6]), 0) * 2).to(torch.float32).unbind()[1].item()


KNOWN: tuple[Callable[[], Any], ...] = (drop_path_rates, written_to, selected, number, offsets)


def model_around(read: Callable[[], Any], into: list[Any]) -> Callable[[], Any]:
    def factory() -> Any:
        into.append(read())
        return nn.Linear(4, 4), (torch.randn(2, 4),)

    return factory


@pytest.mark.parametrize("read", KNOWN)
def test_what_a_constructor_computes_has_its_real_value(read: Callable[[], Any]) -> None:
    found: list[Any] = []
    from_factory(model_around(read, found), {}, CPU)
    assert found == [read()]


@pytest.mark.parametrize("read", KNOWN)
def test_on_a_device_that_is_not_here_too(read: Callable[[], Any]) -> None:
    try:
        cuda_library(cache_folder())
    except NoFakeCuda as reason:
        pytest.skip(str(reason))
    found: list[Any] = []
    with fake_cuda_device(load_profile("a100"), cache_folder()) as device:
        from_factory(model_around(read, found), {}, device.device)
    assert found == [read()]


def overwritten_by_noise() -> Any:
    table = torch.zeros(4)
    view = table[:2]
    table.normal_()
    return view.tolist()


def copied_from_a_parameter() -> Any:
    table = torch.zeros(4)
    table.copy_(nn.Linear(4, 1).weight[0].detach())
    return table.tolist()


@pytest.mark.parametrize(
    "read",
    [
        lambda: torch.rand(3).tolist(),
        lambda: torch.empty(3).sum().item(),
        lambda: nn.Linear(2, 2).weight.abs().max().item(),
        lambda: torch.zeros(2**20).sum().item(),
        lambda: torch.zeros(3, out=torch.empty(3)).add_(torch.rand(3)).tolist(),
        overwritten_by_noise,
        copied_from_a_parameter,
    ],
)
def test_a_value_that_cannot_be_known_is_refused_with_the_line_that_reads_it(read: Callable[[], Any]) -> None:
    with pytest.raises(AutockptError, match=r"random, large or computed from parameters.*test_known_values\.py:\d+: "):
        from_factory(model_around(read, []), {}, CPU)


@pytest.mark.parametrize("bounds", [(-2.0, 2.0), (-0.001, 0.001)])
def test_a_truncated_normal_needs_no_values(bounds: tuple[float, float]) -> None:
    def factory() -> Any:
        layer = nn.Linear(4, 4)
        nn.init.trunc_normal_(layer.weight, 0.0, 1.0, *bounds)
        return layer, (torch.randn(2, 4),)

    assert from_factory(factory, {}, CPU).parameters[0].shape == (4, 4)


def test_initialisers_of_unknown_tensors_run_nothing() -> None:
    ran: list[str] = []

    class Counting(FakeTensorMode):
        def dispatch(self, func: Any, *args: Any, **kwargs: Any) -> Any:
            ran.append(str(func))
            return super().dispatch(func, *args, **kwargs)

    with Counting(), KnownValues():
        weight = torch.empty(1000, 1000)
        ran.clear()
        nn.init.kaiming_uniform_(weight)
        nn.init.zeros_(weight)
    assert ran == []
    assert isinstance(weight, FakeTensor)


def test_large_tables_are_not_allocated() -> None:
    def factory() -> Any:
        positions = torch.arange(10_000)
        far: Tensor = positions[:, None] - positions[None, :]
        return nn.Linear(4, 4), (far.repeat(1000, 1000),)

    (table,) = from_factory(factory, {}, CPU).inputs
    assert table.numel() == 10**14


def test_a_step_runs_operators_on_functions_as_any_fake_mode_does() -> None:
    def add(x: Tensor, y: Tensor) -> tuple[Tensor]:
        return (x + y,)

    def doubled(x: Tensor) -> tuple[Tensor]:
        return (2 * x,)

    with StepMode():
        x = torch.randn(4, 8)
        (scanned,) = associative_scan_op(add, (x,), ())
        (chosen,) = cond_op(x.sum() > 0, doubled, doubled, (x,))
    assert isinstance(scanned, FakeTensor)
    assert scanned.shape == (4, 8)
    assert isinstance(chosen, FakeTensor)
    assert chosen.shape == (4, 8)
