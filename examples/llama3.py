"""Llama 3 8B by its published shapes: eight billion parameters to plan for, and none to download.

autockpt analyze examples/llama3.py:llama3_8b --device h100 --budget 48GiB
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Queries of 32 heads share the keys and values of eight."""

    def __init__(self, width: int, heads: int, key_heads: int) -> None:
        super().__init__()
        self.size = width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, key_heads * self.size, bias=False)
        self.value = nn.Linear(width, key_heads * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        query, key, value = (
            project(x).unflatten(2, (-1, self.size)).transpose(1, 2) for project in (self.query, self.key, self.value)
        )
        query, key = rotate(query, cosine, sine), rotate(key, cosine, sine)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turn every pair of features by the angle of its position."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


class FeedForward(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, key_heads: int, hidden: int) -> None:
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.attention, self.mlp = Attention(width, heads, key_heads), FeedForward(width, hidden)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        x = x + self.attention(self.norm_attention(x), cosine, sine)
        return x + self.mlp(self.norm_mlp(x))


class Llama(nn.Module):
    """Tokens and targets in, mean cross-entropy out."""

    def __init__(
        self, vocabulary: int, width: int, heads: int, key_heads: int, hidden: int, layers: int, length: int
    ) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, key_heads, hidden) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.head = nn.Linear(width, vocabulary, bias=False)
        pairs = width // heads // 2
        angles = torch.outer(torch.arange(length), 500000.0 ** (-torch.arange(pairs) / pairs))
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.token(tokens)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def llama3_8b(batch: int = 1, seq: int = 4096, layers: int = 32) -> tuple[Llama, tuple[Tensor, Tensor]]:
    """32 layers of width 4096 in bfloat16, a vocabulary of 128,256."""
    model = Llama(128256, width=4096, heads=32, key_heads=8, hidden=14336, layers=layers, length=seq)
    tokens = torch.randint(0, 128256, (batch, seq))
    return model.to(torch.bfloat16), (tokens, tokens.roll(-1, dims=1))
