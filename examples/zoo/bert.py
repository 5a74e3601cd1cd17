"""A BERT-like encoder: dropout inside the attention keeps whole length × length matrices, and must not draw anew."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

IGNORED = -100
"""The target of a position whose token was not masked."""


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, visible: Tensor) -> Tensor:
        qkv = self.qkv(x).unflatten(2, (3, self.heads, -1))
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        dropped = self.dropout.p if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=visible, dropout_p=dropped)
        x = self.norm_attention(x + self.dropout(self.out(mixed.transpose(1, 2).flatten(2))))
        return self.norm_mlp(x + self.dropout(self.down(F.gelu(self.up(x)))))


class Bert(nn.Module):
    """Tokens with some masked, the lengths of the sequences and targets in, cross-entropy of the masked tokens out."""

    def __init__(self, vocabulary: int, width: int, heads: int, layers: int, length: int, dropout: float) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.norm_embedding = nn.LayerNorm(width)
        self.layers = nn.ModuleList(Layer(width, heads, dropout) for _ in range(layers))
        self.transform, self.norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, lengths: Tensor, targets: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        visible = (positions < lengths[:, None])[:, None, None, :]
        x = self.dropout(self.norm_embedding(self.token(tokens) + self.position(positions)))
        for layer in self.layers:
            x = layer(x, visible)
        scores = self.head(self.norm(F.gelu(self.transform(x))))
        return F.cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


def bert() -> tuple[Bert, tuple[Tensor, Tensor, Tensor]]:
    """Three layers of width 256, batch 8, sequences of up to 128 tokens, one in seven masked."""
    batch, length, vocabulary, mask_token = 8, 128, 1000, 0
    truth = torch.randint(1, vocabulary, (batch, length))
    lengths = torch.randint(length // 2, length + 1, (batch,))
    masked = (torch.rand(batch, length) < 0.15) & (torch.arange(length) < lengths[:, None])
    model = Bert(vocabulary, width=256, heads=4, layers=3, length=length, dropout=0.1)
    return model, (truth.masked_fill(masked, mask_token), lengths, truth.masked_fill(~masked, IGNORED))
