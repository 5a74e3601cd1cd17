"""A small GPT, and factories that give a model with its inputs for `autockpt bench examples/gpt.py:gpt8`."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm_attention(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.dropout(self.out(mixed.transpose(1, 2).reshape(batch, length, width)))
        return x + self.dropout(self.down(F.gelu(self.up(self.norm_mlp(x)))))


class GPT(nn.Module):
    """Tokens and targets in, mean cross-entropy out."""

    def __init__(
        self,
        vocabulary: int,
        width: int = 256,
        heads: int = 4,
        layers: int = 8,
        length: int = 256,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def gpt8(layers: int = 8, dropout: float = 0.0, batch: int = 8, seq: int = 256) -> tuple[GPT, tuple[Tensor, Tensor]]:
    """Eight layers of width 256, batch 8, sequence 256, float32."""
    model = GPT(vocabulary=256, layers=layers, length=seq, dropout=dropout)
    return model, (torch.randint(0, 256, (batch, seq)), torch.randint(0, 256, (batch, seq)))


def gpt2() -> tuple[GPT, tuple[Tensor, Tensor]]:
    """The same with two layers."""
    return gpt8(layers=2)
