"""Operators of `torch.library` that random programs call: pure ones, one that draws a mask, one that counts calls.

They allocate nothing but their results: what a custom operator allocates inside itself is not known to a plan.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["counted", "drawn", "scaled_tanh", "two_results"]


@torch.library.custom_op("autockpt_fuzz::scaled_tanh", mutates_args=())
def scaled_tanh(x: Tensor, scale: float) -> Tensor:
    """`tanh(scale * x)`; pure."""
    return torch.mul(x, scale).tanh_()


@scaled_tanh.register_fake
def _(x: Tensor, scale: float) -> Tensor:
    return torch.empty_like(x)


def _save_result(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
    ctx.save_for_backward(output)
    ctx.scale = inputs[1]


def _scaled_tanh_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
    (result,) = ctx.saved_tensors
    return gradient * (1 - result * result) * ctx.scale, None


scaled_tanh.register_autograd(_scaled_tanh_backward, setup_context=_save_result)


@torch.library.custom_op("autockpt_fuzz::two_results", mutates_args=())
def two_results(x: Tensor) -> tuple[Tensor, Tensor]:
    """`sin(x)` and `cos(x)`; pure."""
    return torch.sin(x), torch.cos(x)


@two_results.register_fake
def _(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(x)


def _save_both(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*output)


def _two_results_backward(ctx: Any, sine: Tensor, cosine: Tensor) -> Tensor:
    sin, cos = ctx.saved_tensors
    gradient: Tensor = sine * cos - cosine * sin
    return gradient


two_results.register_autograd(_two_results_backward, setup_context=_save_both)


@torch.library.custom_op("autockpt_fuzz::drawn", mutates_args=())
def drawn(x: Tensor) -> Tensor:
    """A random mask like `x`, scaled to the mean 1. Impure, and not tagged so: a second run draws another mask."""
    return torch.empty_like(x).bernoulli_(0.5).mul_(2)


@drawn.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


drawn.register_autograd(lambda ctx, gradient: torch.zeros_like(gradient))

_CALLS = 0


@torch.library.custom_op("autockpt_fuzz::counted", mutates_args=())
def counted(x: Tensor) -> Tensor:
    """Numbers that depend on how often this ran. Impure: a second run returns others."""
    global _CALLS
    _CALLS += 1
    return torch.full_like(x, 1.0 + _CALLS % 7)


@counted.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


counted.register_autograd(lambda ctx, gradient: torch.zeros_like(gradient))


def reset_calls() -> None:
    """Begin to count anew, as a training script that starts again would."""
    global _CALLS
    _CALLS = 0


def autocast_linear(x: Tensor, weight: Tensor) -> Tensor:
    """A linear layer in mixed precision, as one expression."""
    with torch.autocast("cpu", torch.bfloat16):
        return torch.nn.functional.gelu(torch.nn.functional.linear(x, weight))
