"""A translation transformer: what the encoder says is read by every decoder layer, so it lives almost all the step."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Every position of `x` looks at the positions of `memory`."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.pair, self.out = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, memory: Tensor, causal: bool = False) -> Tensor:
        query = self.query(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
        key, value = self.pair(memory).unflatten(2, (2, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """An encoder layer, or with `crossed` a decoder layer."""

    def __init__(self, width: int, heads: int, crossed: bool) -> None:
        super().__init__()
        self.norm_self, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm_cross = nn.LayerNorm(width) if crossed else None
        self.cross = Attention(width, heads) if crossed else None
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, memory: Tensor | None = None) -> Tensor:
        normed = self.norm_self(x)
        x = x + self.attention(normed, normed, causal=memory is not None)
        if self.cross is not None and self.norm_cross is not None and memory is not None:
            x = x + self.cross(self.norm_cross(x), memory)
        return x + self.down(F.relu(self.up(self.norm_mlp(x))))


class EncoderDecoder(nn.Module):
    """Source and target sentences in, mean cross-entropy of every next target token out."""

    def __init__(self, vocabulary: int, width: int, heads: int, layers: int, length: int) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        nn.init.normal_(self.token.weight, std=width**-0.5)  # the same matrix reads the tokens and scores them
        self.encoder = nn.ModuleList(Layer(width, heads, crossed=False) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(width, heads, crossed=True) for _ in range(layers))
        self.norm_memory, self.norm = nn.LayerNorm(width), nn.LayerNorm(width)

    def embed(self, tokens: Tensor) -> Tensor:
        return self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory)
        memory = self.norm_memory(memory)
        x = self.embed(target[:, :-1])
        for layer in self.decoder:
            x = layer(x, memory)
        scores = F.linear(self.norm(x), self.token.weight)
        return F.cross_entropy(scores.flatten(0, 1), target[:, 1:].flatten())


def encoder_decoder() -> tuple[EncoderDecoder, tuple[Tensor, Tensor]]:
    """Two layers of width 256 on each side, batch 8, 192 source and 128 target tokens."""
    model = EncoderDecoder(vocabulary=1000, width=256, heads=4, layers=2, length=192)
    return model, (torch.randint(0, 1000, (8, 192)), torch.randint(0, 1000, (8, 129)))
