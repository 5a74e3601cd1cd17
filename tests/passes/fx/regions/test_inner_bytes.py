"""Bytes inside a call with subgraphs are those of its operations, each result freed after its last use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._higher_order_ops.map import map as mapped
from torch._higher_order_ops.scan import scan
from torch.fx.experimental.proxy_tensor import make_fx

from autockpt.passes.fx.regions import inner_bytes

FLOATS = 4
ROWS, WIDTH = 16, 32
ONE = FLOATS * ROWS * WIDTH


def inside(function: Callable[..., Any], *inputs: Tensor) -> int:
    """Of the one higher-order call in a function."""
    module = make_fx(function, tracing_mode="fake")(*inputs)
    (found,) = [
        inner_bytes(node) for node in module.graph.nodes if node.op == "call_function" and "_graph" in _args(node)
    ]
    return found


def _args(node: Any) -> str:
    return " ".join(str(source) for source in node.all_input_nodes)


def rows(width: int = WIDTH) -> Tensor:
    return torch.randn(ROWS, width)


def test_a_chain_holds_two_values_at_a_time_and_its_result_is_not_counted() -> None:
    def run(x: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x.sin().cos().tanh().exp(), lambda x: x.sin(), (x,))

    assert inside(run, rows()) == ONE


def test_the_larger_branch_counts() -> None:
    """Its sine, as wide as the product that it is of, is four times as large as the result."""

    def run(x: Tensor, up: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x, up: (x @ up).sin() @ up.t(), lambda x, up: x.sin(), (x, up))

    assert inside(run, rows(), torch.randn(WIDTH, 4 * WIDTH)) == (4 + 4 - 1) * ONE


def test_a_view_allocates_nothing() -> None:
    def run(x: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x.t().view(-1, ROWS).sin(), lambda x: x.t().cos(), (x,))

    assert inside(run, rows()) == 0


def test_a_map_holds_all_rows_before_it_stacks_them() -> None:
    x = rows()
    assert inside(lambda x: mapped(lambda row: row.sin(), x), x) == ONE + FLOATS * WIDTH


def test_a_scan_holds_what_it_carries_and_the_indices_of_one_step() -> None:
    carried, index = FLOATS * WIDTH, 8 * WIDTH

    def step(carry: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        return carry + x, (carry * x).sin()

    def run(start: Tensor, x: Tensor) -> Any:
        return scan(step, start, x)

    # In a step: the sum, the product and its sine.
    assert inside(run, torch.randn(WIDTH), rows()) == 3 * carried + 2 * carried + 2 * index
