"""Replacements for extern kernels that exist on a GPU only: attention by its formula, convolutions of the CPU."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map, tree_map_only

aten = torch.ops.aten


class Vendor(TorchDispatchMode):
    """Runs these operators on the CPU, and gives their results the strides that they have on a GPU."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func not in _REPLACEMENTS:
            return func(*args, **kwargs)
        return tree_map(_laid_out, _REPLACEMENTS[func](*args, **kwargs), _shapes(func, args, kwargs))


def _shapes(func: Any, args: Any, kwargs: Any) -> Any:
    """The operator's results on a GPU, as fake tensors."""
    with FakeTensorMode():
        fakes = tree_map_only(
            Tensor, lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="cuda"), (args, kwargs)
        )
        return func(*fakes[0], **fakes[1])


def _laid_out(result: Any, shape: Any) -> Any:
    if not isinstance(result, Tensor):
        return result
    assert result.shape == shape.shape
    assert result.dtype == shape.dtype
    return torch.empty_strided(shape.shape, shape.stride(), dtype=shape.dtype).copy_(result)


def _flash(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, debug: bool = False, scale: Any = None
) -> tuple[Any, ...]:
    assert not dropout_p
    out, logsumexp = _attend(query, key, value, is_causal, scale)
    seed, offset = torch.zeros(2, dtype=torch.uint64), torch.zeros((), dtype=torch.uint64)
    return out, logsumexp, None, None, query.shape[2], key.shape[2], seed, offset, query.new_empty(0)


def _flash_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    *rest: Any,
    scale: Any = None,
) -> tuple[Tensor, ...]:
    return _attend_backward(grad, query, key, value, out, logsumexp, is_causal=rest[5], scale=scale)


def _efficient(
    query: Tensor, key: Tensor, value: Tensor, bias: None, compute_logsumexp: bool, *rest: Any, scale: Any = None
) -> tuple[Tensor, ...]:
    dropout_p, is_causal = (*rest, *(0.0, False)[len(rest) :])
    assert bias is None
    assert not dropout_p
    out, logsumexp = _attend(query, key, value, is_causal, scale)
    padded = torch.nn.functional.pad(logsumexp, (0, -query.shape[2] % 32))
    return out, padded, torch.zeros((), dtype=torch.long), torch.zeros((), dtype=torch.long)


def _efficient_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    _: None,
    out: Tensor,
    logsumexp: Tensor,
    *rest: Any,
    scale: Any = None,
) -> tuple[Any, ...]:
    is_causal = rest[4] if len(rest) > 4 else False
    logsumexp = logsumexp[..., : query.shape[2]]
    return (*_attend_backward(grad, query, key, value, out, logsumexp, is_causal, scale), None)


def _attend(query: Tensor, key: Tensor, value: Tensor, is_causal: bool, scale: float | None) -> tuple[Tensor, Tensor]:
    scores = _scores(query, key, is_causal, scale)
    return (scores.softmax(-1) @ value.float()).to(query.dtype), scores.logsumexp(-1)


def _attend_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, is_causal: bool, scale: Any
) -> tuple[Tensor, ...]:
    """From the logsumexp that the forward saved, as the real kernels do: a wrong one gives wrong gradients."""
    shares = (_scores(query, key, is_causal, scale) - logsumexp[..., None]).exp()
    wanted = grad.float() @ value.float().mT - (grad.float() * out.float()).sum(-1, keepdim=True)
    slopes = shares * wanted * _scale(query, scale)
    gradients = slopes @ key.float(), slopes.mT @ query.float(), shares.mT @ grad.float()
    return tuple(gradient.to(query.dtype) for gradient in gradients)


def _scores(query: Tensor, key: Tensor, is_causal: bool, scale: float | None) -> Tensor:
    scores = query.float() @ key.float().mT * _scale(query, scale)
    if not is_causal:
        return scores
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(hidden, -math.inf)


def _scale(query: Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale


_REPLACEMENTS = {
    aten._scaled_dot_product_flash_attention.default: _flash,
    aten._scaled_dot_product_flash_attention_backward.default: _flash_backward,
    aten._scaled_dot_product_efficient_attention.default: _efficient,
    aten._scaled_dot_product_efficient_attention_backward.default: _efficient_backward,
    aten.convolution.default: aten.convolution.default,
    aten.convolution_backward.default: aten.convolution_backward.default,
}
