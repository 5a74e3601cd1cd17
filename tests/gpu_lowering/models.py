"""Blocks: small ones to run in Triton's interpreter, large ones to count their memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

Masks = Sequence[Tensor] | None
DROPPED = 0.5


class Transformer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, masks: Masks = None) -> tuple[Tensor, ...]:
        qkv = self.qkv(self.norm_attention(x)).unflatten(2, (3, self.heads, -1))
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = self.mix(query, key, value)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return (x + self.down(F.gelu(self.up(self.norm_mlp(x)))),)

    def mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)


class Flexible(Transformer):
    """The same with FlexAttention, causal by a block mask, and a score function.

    FlexAttention has no gradients on a CPU. So there, for the reference, what it computes is written out.
    """

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__(width, heads)
        mask = create_block_mask(_seen, None, None, length, length, device="cpu")
        for name in _BLOCKS:
            self.register_buffer(name, getattr(mask, name))

    def mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        length = query.shape[2]
        if not query.is_cuda:
            row, column = torch.arange(length)[:, None], torch.arange(length)
            scores = query @ key.transpose(2, 3) * query.shape[-1] ** -0.5 + (column - row) / 8
            return scores.masked_fill(column > row, float("-inf")).softmax(-1) @ value
        blocks = [getattr(self, name) for name in _BLOCKS]
        mask = BlockMask.from_kv_blocks(*blocks, mask_mod=_seen, seq_lengths=(length, length))
        mixed = flex_attention(query, key, value, _scored, mask)
        assert isinstance(mixed, Tensor)
        return mixed


_BLOCKS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")


def _seen(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return query >= key


def _scored(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """A score falls with the distance."""
    return score + (key - query) / 8


class Convolution(nn.Module):
    """Two convolutions with batch norms, which update their statistics in the step, and a residual connection."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norm_first, self.norm_second = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x: Tensor, masks: Masks = None) -> tuple[Tensor, ...]:
        inner = F.silu(self.norm_first(self.first(x)))
        return (F.silu(x + self.norm_second(self.second(inner))),)


class Dropout(nn.Module):
    """Returns the results of its dropouts too: they are zero exactly where the mask is, so each mask is visible.

    The gradients of its biases are sums over all rows, so that a recomputed mask is drawn by a kernel of another shape.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, masks: Masks = None) -> tuple[Tensor, ...]:
        first = drop(torch.exp(self.up(self.norm(x))), masks[0] if masks else None)
        second = drop(torch.exp(self.down(first / first.shape[-1])), masks[1] if masks else None)
        return x + second, first.detach(), second.detach()


def drop(x: Tensor, mask: Tensor | None) -> Tensor:
    """Random dropout, or dropout by a mask."""
    return F.dropout(x, DROPPED) if mask is None else x * mask / (1 - DROPPED)


@dataclass(frozen=True)
class Block:
    build: Callable[[], nn.Module]
    shape: tuple[int, ...]

    def __call__(self, dtype: torch.dtype = torch.float32) -> tuple[nn.Module, tuple[Tensor]]:
        return self.build().to(dtype), (torch.randn(self.shape, dtype=dtype).requires_grad_(),)


SMALL = {
    "transformer": Block(partial(Transformer, 32, heads=2), (2, 16, 32)),
    "convolution": Block(partial(Convolution, 8), (2, 8, 8, 8)),
    "dropout": Block(partial(Dropout, 32), (32, 32)),
    "flexible": Block(partial(Flexible, 32, heads=2, length=256), (1, 256, 32)),
}
LARGE = {
    "transformer": Block(partial(Transformer, 1024, heads=16), (8, 1024, 1024)),
    "convolution": Block(partial(Convolution, 128), (16, 128, 64, 64)),
    "dropout": Block(partial(Dropout, 1024), (8192, 1024)),
    "flexible": Block(partial(Flexible, 1024, heads=16, length=1024), (8, 1024, 1024)),
}
