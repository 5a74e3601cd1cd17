"""What is known of a call before it is run twice: tags, arguments, operators inside it, and who vouched for them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch._higher_order_ops.triton_kernel_wrap import triton_kernel_wrapper_functional
from traced import joint_of, read_joint

from autockpt.passes.fx.vouched import traits_in, unvouched_in
from autockpt.passes.graph.joint import JointGraph
from autockpt.passes.graph.value import Role, Trait, Value


@torch.library.custom_op("autockpt_vouched::plain", mutates_args=())
def plain(x: Tensor) -> Tensor:
    return x * 2


@torch.library.custom_op("autockpt_vouched::fill", mutates_args=("x",))
def fill(x: Tensor) -> None:
    x.fill_(1.0)


@torch.library.custom_op("autockpt_vouched::reduce", mutates_args=())
def reduce(x: Tensor, group_name: str) -> Tensor:
    return x.clone()


@torch.library.custom_op("autockpt_vouched::inexact", mutates_args=(), tags=(torch.Tag.nondeterministic_bitwise,))
def inexact(x: Tensor) -> Tensor:
    return x.clone()


for operator in (plain, inexact):
    operator.register_fake(torch.empty_like)
reduce.register_fake(lambda x, _: torch.empty_like(x))


class Forward(nn.Module):
    def __init__(self, forward: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))
        self.function = forward

    def forward(self, x: Tensor) -> Tensor:
        return (self.weight * self.function(x)).sum()


def graph_of(function: Any) -> JointGraph:
    return read_joint(*joint_of(Forward(function), torch.randn(4, 4)))


def called(graph: JointGraph, name: str) -> Value:
    return next(value for value in graph.values if name in value.operator and value.role is Role.FORWARD)


@pytest.mark.parametrize(
    ("function", "operator", "names"),
    [
        (lambda x: plain(x), "plain", ("autockpt_vouched::plain.default",)),
        (lambda x: (fill(y := x.clone()), y)[1], "auto_functionalized", ("autockpt_vouched::fill.default",)),
        (
            lambda x: torch.cond(x.sum() > 0, lambda y: plain(y) + 1, lambda y: y.clone(), (x,)),
            "cond",
            ("higher_order::cond", "autockpt_vouched::plain.default"),
        ),
        (lambda x: x.sin(), "sin", ()),
        (lambda x: torch.linalg.svd(x)[1] + x, "svd", ()),
    ],
    ids=["custom operator", "mutating operator", "branches", "pointwise", "several results"],
)
def test_operators_outside_of_aten_are_named(function: Any, operator: str, names: tuple[str, ...]) -> None:
    assert called(graph_of(function), operator).unvouched == names


@pytest.mark.parametrize(
    ("function", "operator", "trait"),
    [
        (lambda x: reduce(x, "0"), "reduce", Trait.COLLECTIVE),
        (lambda x: inexact(x), "inexact", Trait.UNREPEATABLE),
        (lambda x: x.index_add(0, torch.tensor([0, 0]), x[:2]), "index", Trait.UNREPEATABLE),
        (lambda x: x.index_put((torch.tensor([0, 0]),), x[:2], accumulate=True), "index_put", Trait.UNREPEATABLE),
        (
            lambda x: torch.cond(x.sum() > 0, lambda y: torch.rand_like(y), lambda y: y.clone(), (x,)),
            "cond",
            Trait.RANDOM,
        ),
    ],
    ids=["process group", "tag", "index_add", "accumulating index_put", "random branch"],
)
def test_what_cannot_be_repeated_is_found_without_a_promise(function: Any, operator: str, trait: Trait) -> None:
    assert trait in called(graph_of(function), operator).traits


def test_writing_at_indices_without_adding_can_be_repeated() -> None:
    graph = graph_of(lambda x: x.index_put((torch.tensor([0, 1]),), x[:2]))
    assert Trait.UNREPEATABLE not in called(graph, "index_put").traits


def test_a_triton_kernel_is_named_by_its_module_and_function() -> None:
    class Kernel:
        """As Triton's: autotuners and heuristics wrap a function as `fn`."""

        def __init__(self, fn: Any) -> None:
            self.fn = fn

    call = fx.Graph().call_function(triton_kernel_wrapper_functional, (), {"kernel_idx": 0})
    names = unvouched_in(call, {0: Kernel(Kernel(graph_of))})
    assert names == (f"triton::{__name__}.graph_of",)


def test_arithmetic_on_sizes_needs_no_promise() -> None:
    graph = fx.Graph()
    size = graph.call_function(max, (3, 4))
    size.meta["val"] = 4
    assert unvouched_in(size, {}) == ()
    assert not traits_in(size)
