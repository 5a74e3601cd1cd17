"""Steps with higher-order operators are planned around them: within the budget, the same gradients, no warning."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as mapped
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.nn import functional as F

import autockpt
from autockpt.measure import Training, measure_peak

WIDTH = 32


class Mlp(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.up, self.down, self.dropout = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH), dropout

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(self.down(F.gelu(self.up(x))), self.dropout)


class Scan(nn.Module):
    """A recurrence; its results are views of what the operator returns."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        weight = self.inner.weight

        def step(state: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
            state = torch.sin(state @ weight + row)
            return state, state * 2.0

        return scan(step, x[:, 0].cos(), self.outer(x).transpose(0, 1), dim=0)[1].transpose(0, 1)


class Decay(nn.Module):
    """A linear recurrence by `associative_scan`."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.value = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        def combine(left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            return left[0] * right[0], left[1] * right[0] + right[1]

        pair = (self.gate(x).sigmoid(), self.value(x))
        result: Tensor = associative_scan(combine, pair, dim=1, combine_mode="generic")[1]
        return result


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = Mlp(), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = torch.cond(x.sum() > 0, lambda x: self.one(x), lambda x: self.other(x).sin(), (x,))
        return result


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        weight = self.linear.weight
        result: Tensor = mapped(lambda row: torch.tanh(row @ weight), x)
        return result


class Loop(nn.Module):
    """Without gradients inside: those of several loops in a graph are beyond torch 2.13."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        start = x.new_zeros((), dtype=torch.int64)
        with torch.no_grad():
            looped = while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, torch.tanh(y) * 1.1), (start, x.detach()))
        return self.linear(x) * looped[1]


@torch.compiler.nested_compile_region
def region(block: nn.Module, x: Tensor) -> Tensor:
    result: Tensor = block(x)
    return result


class Region(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.block = Mlp(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return region(self.block, x)


@torch.compiler.nested_compile_region
def twice(one: nn.Module, other: nn.Module, x: Tensor) -> Tensor:
    result: Tensor = other(region(one, x)) + region(one, x)
    return result


class Nested(nn.Module):
    """A region that calls a region."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = Mlp(), Mlp()

    def forward(self, x: Tensor) -> Tensor:
        return twice(self.one, self.other, x)


class Stack(nn.Module):
    def __init__(self, layers: Any) -> None:
        super().__init__()
        self.layers, self.between = nn.ModuleList(layers), nn.ModuleList(Mlp() for _ in layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer, mlp in zip(self.layers, self.between, strict=True):
            x = x + layer(x)
            x = x + mlp(x)
        return x.square().mean()


LAYERS = {
    "scan": Scan,
    "associative_scan": Decay,
    "cond": Branches,
    "map": Rows,
    "while_loop": Loop,
    "region": Region,
    "region with dropout": lambda: Region(0.3),
    "nested regions": Nested,
}
LONG, WIDE = (2, 64), (16, 4)


def gradients(model: nn.Module, compiled: Any, x: Tensor) -> list[Tensor]:
    model.zero_grad()
    torch.manual_seed(7)
    loss = compiled(x)
    loss.backward()
    return [loss.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)]


def check(layer: str, shape: tuple[int, int], budgets: tuple[float, ...], lower: str) -> None:
    """Gradients of eager mode, with `lower="eager"` to the bit; and the peak, as allocated.

    Inductor of torch 2.13 is no reference: without a plan its gradients of nested regions are wrong by a quarter.
    """
    torch._dynamo.reset()
    model, x = Stack([LAYERS[layer]() for _ in range(2)]), torch.randn(*shape, WIDTH)
    expected = gradients(model, torch.compile(model, backend="aot_eager"), x)
    given = Training(model, (x,), model).graph_input_bytes
    peaks, recomputed = [], []
    for budget in budgets:
        torch._dynamo.reset()
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="autockpt")
            options = {"memory_budget": budget, "lower": lower}
            compiled = torch.compile(model, backend="autockpt", options=options, fullgraph=True)
            found = gradients(model, compiled, x)
        made = autockpt.decisions()[-1]
        for one, other in zip(found, expected, strict=True):
            scale = float(other.abs().max())
            torch.testing.assert_close(one, other, rtol=0, atol=2e-6 * scale if lower == "inductor" else 1e-7)
        del found
        model.zero_grad()
        peaks.append(measure_peak(lambda c=compiled: c(x).backward(), x.device) + given)
        assert peaks[-1] <= made.budget_bytes
        assert lower == "eager" or made.dry_run_failure == ""
        recomputed.append(made.recompute_seconds)
    assert peaks[0] < peaks[-1]
    assert lower == "inductor" or recomputed[0] > recomputed[-1]


@pytest.mark.parametrize(("layer", "shape"), [*((layer, WIDE) for layer in LAYERS), ("region", LONG), ("scan", LONG)])
def test_operator_by_operator(layer: str, shape: tuple[int, int]) -> None:
    check(layer, shape, (0.0, 0.5, 1.0), "eager")


@pytest.mark.inductor
@pytest.mark.parametrize("layer", ["scan", "cond", "while_loop", "nested regions"])
def test_in_code_that_inductor_generates(layer: str) -> None:
    # Inductor makes loops of scans, whose rows it reads as numbers; without this it fails for any backend.
    with torch._dynamo.config.patch(capture_scalar_outputs=layer == "scan"):
        check(layer, WIDE, (0.0, 0.5, 1.0) if layer == "while_loop" else (0.0, 1.0), "inductor")
