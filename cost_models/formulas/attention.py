"""Fused attention of every backend: two matrix products in the forward, five in the backward.

With `is_causal` the scores above the diagonal are not counted, because kernels skip their blocks; torch's flop counter
counts them.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from autockpt.cost_models.formulas.rules import Call, rule
from autockpt.cost_models.formulas.symbolic import smallest
from autockpt.cost_models.work import TensorSpec, Work

_HEADS_FIRST = (
    "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
    "_scaled_dot_product_fused_attention_overrideable"
)
"""Tensors of (batch, heads, length, width)."""
_LENGTH_FIRST = "_flash_attention_forward _efficient_attention_forward _cudnn_attention_forward"
"""Tensors of (batch, length, heads, width)."""


@rule(_HEADS_FIRST, arguments=True)
def forward(call: Call) -> Work:
    return _forward(call, *call.inputs[:3])


@rule(_LENGTH_FIRST, arguments=True)
def length_first(call: Call) -> Work:
    return _forward(call, *map(_heads_first, call.inputs[:3]))


# The gradient of the result comes before query, key and value.
@rule(" ".join(f"{name}_backward" for name in _HEADS_FIRST.split()), arguments=True)
def backward(call: Call) -> Work:
    return _backward(call, *call.inputs[1:4])


@rule(_LENGTH_FIRST.replace("_forward", "_backward"), arguments=True)
def length_first_backward(call: Call) -> Work:
    return _backward(call, *map(_heads_first, call.inputs[1:4]))


def _forward(call: Call, query: TensorSpec, key: TensorSpec, value: TensorSpec) -> Work:
    scores = scores_of(query, key, causal=bool(call.arguments.get("is_causal")))
    work = call.matrix(2 * scores * (query.shape[-1] + value.shape[-1]), "attention")
    return replace(work, random_numbers=_dropped(call, scores))


def _backward(call: Call, query: TensorSpec, key: TensorSpec, value: TensorSpec) -> Work:
    # Over the query width: recomputed scores, gradients of query and key. Over the value width: gradients of value and
    # probabilities.
    scores = scores_of(query, key, causal=bool(call.arguments.get("is_causal")))
    work = call.matrix(2 * scores * (3 * query.shape[-1] + 2 * value.shape[-1]), "attention_backward")
    return replace(work, random_numbers=_dropped(call, scores))


def scores_of(query: TensorSpec, key: TensorSpec, *, causal: bool = False) -> Any:
    """Number of computed scores. Query heads that share a key head have separate scores."""
    length, reach = query.shape[-2], key.shape[-2]
    heads = prod(query.shape[:-2])
    if not causal:
        return heads * length * reach
    # On and below the diagonal that starts in the upper left corner.
    square = smallest(length, reach)
    return heads * (square * (square + 1) / 2 + (length - square) * reach)


def _dropped(call: Call, scores: Any) -> Any:
    return scores if call.arguments.get("dropout_p") else 0.0


def _heads_first(spec: TensorSpec) -> TensorSpec:
    """Sequences of unequal length are packed into one without a batch dimension and counted as one: an upper bound."""
    *batch, length, heads, width = spec.shape
    return replace(spec, shape=(*batch, heads, length, width))
