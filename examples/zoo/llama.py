"""A Llama-like decoder: rotations, repeated keys and the SwiGLU product are large and cheap to compute again."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turn every pair of features by the angle of its position."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, key_heads: int) -> None:
        super().__init__()
        self.size, self.group = width // heads, heads // key_heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, key_heads * self.size, bias=False)
        self.value = nn.Linear(width, key_heads * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        query, key, value = (
            project(x).unflatten(2, (-1, self.size)).transpose(1, 2) for project in (self.query, self.key, self.value)
        )
        query, key = rotate(query, cosine, sine), rotate(key, cosine, sine)
        key, value = key.repeat_interleave(self.group, dim=1), value.repeat_interleave(self.group, dim=1)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, key_heads: int, hidden: int) -> None:
        super().__init__()
        self.norm_attention, self.norm_mlp = RMSNorm(width), RMSNorm(width)
        self.attention = Attention(width, heads, key_heads)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        x = x + self.attention(self.norm_attention(x), cosine, sine)
        normed = self.norm_mlp(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


class Llama(nn.Module):
    """Tokens and targets in, mean cross-entropy out."""

    def __init__(self, vocabulary: int, width: int, heads: int, key_heads: int, layers: int, length: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, key_heads, hidden=width * 11 // 4) for _ in range(layers))
        self.norm = RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        pairs = width // heads // 2
        angles = torch.outer(torch.arange(length), 10000.0 ** (-torch.arange(pairs) / pairs))
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.token(tokens)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def llama() -> tuple[Llama, tuple[Tensor, Tensor]]:
    """Three layers of width 256, eight heads that share two keys, batch 8, sequence 256."""
    model = Llama(vocabulary=256, width=256, heads=8, key_heads=2, layers=3, length=256)
    return model, (torch.randint(0, 256, (8, 256)), torch.randint(0, 256, (8, 256)))
