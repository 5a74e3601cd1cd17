"""The transformer whose joint graphs are planned for the bench, as functions of its weights, in order of use."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

BATCH, LENGTH, WIDTH, HEADS, VOCABULARY = 4, 128, 256, 4, 512


def stem(tokens: Tensor, token: Tensor, position: Tensor) -> Tensor:
    return F.embedding(tokens, token) + position


def block(x: Tensor, *weights: Tensor) -> Tensor:
    return feed_forward(attention(x, *weights[:6]), *weights[6:])


def attention(
    x: Tensor, scale: Tensor, shift: Tensor, qkv: Tensor, qkv_bias: Tensor, out: Tensor, out_bias: Tensor
) -> Tensor:
    asked = F.linear(F.layer_norm(x, (WIDTH,), scale, shift), qkv, qkv_bias)
    query, key, value = asked.view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
    mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    return x + F.linear(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH), out, out_bias)


def feed_forward(
    x: Tensor, scale: Tensor, shift: Tensor, up: Tensor, up_bias: Tensor, down: Tensor, down_bias: Tensor
) -> Tensor:
    wide = F.gelu(F.linear(F.layer_norm(x, (WIDTH,), scale, shift), up, up_bias))
    return x + F.linear(wide, down, down_bias)


def head(x: Tensor, scale: Tensor, shift: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    logits = F.linear(F.layer_norm(x, (WIDTH,), scale, shift), weight)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def stack(tokens: Tensor, token: Tensor, position: Tensor, *rest: Tensor) -> Tensor:
    """All of it: `rest` are the weights of each block in turn, those of the head, and the targets."""
    x = stem(tokens, token, position)
    for first in range(0, len(rest) - 4, 12):
        x = block(x, *rest[first : first + 12])
    return head(x, *rest[-4:])


def stack_inputs(blocks: int) -> list[Tensor]:
    deep = [weight for _ in range(blocks) for weight in block_weights()]
    return [words(), *stem_weights(), *deep, *head_weights(), words()]


def stem_weights() -> list[Tensor]:
    return [_weight(VOCABULARY, WIDTH), _weight(LENGTH, WIDTH)]


def block_weights() -> list[Tensor]:
    def linear(width: int, inputs: int) -> list[Tensor]:
        return [_weight(width, inputs), _weight(width)]

    return [
        *(_weight(WIDTH), _weight(WIDTH)),
        *linear(3 * WIDTH, WIDTH),
        *linear(WIDTH, WIDTH),
        *(_weight(WIDTH), _weight(WIDTH)),
        *linear(4 * WIDTH, WIDTH),
        *linear(WIDTH, 4 * WIDTH),
    ]


def head_weights() -> list[Tensor]:
    return [_weight(WIDTH), _weight(WIDTH), _weight(VOCABULARY, WIDTH)]


def activations() -> Tensor:
    return torch.randn(BATCH, LENGTH, WIDTH, requires_grad=True)


def words() -> Tensor:
    return torch.randint(0, VOCABULARY, (BATCH, LENGTH))


def _weight(*shape: int) -> Tensor:
    return torch.empty(shape).normal_(std=WIDTH**-0.5).requires_grad_()
