"""Joint graphs of transformers of any depth in seconds: a block is traced once and spliced into a stack.

Tracing a whole stack gives the same graph, but takes minutes for the sizes of `bench plan`. The transformer is written
as functions of its weights, which come in the order of their use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from autockpt.inductor import JointModule, capture_joints
from autockpt.passes.fx import splice

BATCH, LENGTH, WIDTH, HEADS, VOCABULARY = 4, 128, 256, 4, 512
_BLOCK_WEIGHTS = 12


def transformer_graph(nodes: int) -> JointModule:
    """The joint graph of a transformer with as many blocks as give about this number of nodes."""
    without, with_one = (len(stacked(blocks).module.graph.nodes) for blocks in (0, 1))
    return stacked(max(1, round((nodes - without) / (with_one - without))))


def stacked(blocks: int) -> JointModule:
    """The joint graph of `transformer` with this number of blocks."""
    stem_piece, block_pieces, head_piece = _pieces()
    # Two traces of a block alternate, so that values of neighbouring blocks never share a fake storage.
    pieces = [stem_piece, *(block_pieces[number % 2] for number in range(blocks)), head_piece]
    module, primals = splice([piece.module for piece in pieces])
    # The first input and the last one are tokens and targets, all others are weights.
    arguments = {"num_fwd_outputs": 1, "static_lifetime_input_indices": list(range(1, primals - 1))}
    return JointModule(module, arguments)


@cache
def _pieces() -> tuple[JointModule, tuple[JointModule, JointModule], JointModule]:
    inputs = [_activations(), *block_weights()]
    return (
        _piece(stem, [token_ids(), *stem_weights()]),
        (_piece(block, inputs), _piece(block, inputs)),
        _piece(head, [_activations(), *head_weights(), token_ids()]),
    )


def _piece(function: Callable[..., Tensor], inputs: Sequence[Tensor]) -> JointModule:
    (captured,) = capture_joints(function, inputs)
    return captured


def transformer(tokens: Tensor, token: Tensor, position: Tensor, *rest: Tensor) -> Tensor:
    """The loss; `rest` are the weights of every block, those of the head, and the targets."""
    x = stem(tokens, token, position)
    for first in range(0, len(rest) - 4, _BLOCK_WEIGHTS):
        x = block(x, *rest[first : first + _BLOCK_WEIGHTS])
    return head(x, *rest[-4:])


def transformer_inputs(blocks: int) -> list[Tensor]:
    weights = [weight for _ in range(blocks) for weight in block_weights()]
    return [token_ids(), *stem_weights(), *weights, *head_weights(), token_ids()]


def stem(tokens: Tensor, token: Tensor, position: Tensor) -> Tensor:
    return F.embedding(tokens, token) + position


def block(x: Tensor, *weights: Tensor) -> Tensor:
    return feed_forward(attention(x, *weights[:6]), *weights[6:])


def attention(
    x: Tensor, scale: Tensor, shift: Tensor, qkv: Tensor, qkv_bias: Tensor, out: Tensor, out_bias: Tensor
) -> Tensor:
    projected = F.linear(F.layer_norm(x, (WIDTH,), scale, shift), qkv, qkv_bias)
    query, key, value = projected.view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
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


def token_ids() -> Tensor:
    return torch.randint(0, VOCABULARY, (BATCH, LENGTH))


def _activations() -> Tensor:
    return torch.randn(BATCH, LENGTH, WIDTH, requires_grad=True)


def _weight(*shape: int) -> Tensor:
    return torch.empty(shape).normal_(std=WIDTH**-0.5).requires_grad_()
