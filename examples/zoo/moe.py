"""A mixture of experts: one-hot dispatch tensors are large, and follow from a few integers that are cheap to keep."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Experts(nn.Module):
    """Every token goes to its `choices` best experts, as long as they have room; shapes do not depend on the data."""

    def __init__(self, width: int, experts: int, choices: int, capacity: int) -> None:
        super().__init__()
        self.experts, self.choices, self.capacity = experts, choices, capacity
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 4 * width) * width**-0.5)
        self.down = nn.Parameter(torch.randn(experts, 4 * width, width) * (4 * width) ** -0.5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        batch, length, _ = x.shape
        shares = self.router(x).softmax(-1)
        weights, chosen = shares.topk(self.choices, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        picks = F.one_hot(chosen, self.experts)
        # The seat of a pick counts the picks of the same expert before it; first choices of a sequence sit first.
        ordered = picks.transpose(1, 2).flatten(1, 2)
        seats = (ordered.cumsum(1) * ordered).sum(-1).view(batch, self.choices, length).transpose(1, 2) - 1
        seated = (seats[..., None] == torch.arange(self.capacity, device=x.device)).to(x.dtype)
        combine = torch.einsum("blk,blke,blkc->blec", weights, picks.to(x.dtype), seated)
        dispatch = (combine > 0).to(x.dtype)
        given = torch.einsum("blec,blw->ebcw", dispatch, x).flatten(1, 2)
        made = F.gelu(given @ self.up) @ self.down
        mixed = torch.einsum("blec,ebcw->blw", combine, made.unflatten(1, (batch, self.capacity)))
        load = picks[:, :, 0].to(x.dtype).mean((0, 1))
        return mixed, self.experts * (load * shares.mean((0, 1))).sum()


class Block(nn.Module):
    def __init__(self, width: int, heads: int, experts: Experts) -> None:
        super().__init__()
        self.heads, self.experts = heads, experts
        self.norm_attention, self.norm_experts = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        qkv = self.qkv(self.norm_attention(x)).unflatten(2, (3, self.heads, -1))
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        mixed, imbalance = self.experts(self.norm_experts(x))
        return x + mixed, imbalance


class MixtureOfExperts(nn.Module):
    """Tokens and targets in, mean cross-entropy out, plus a little for experts that are used unevenly."""

    def __init__(self, vocabulary: int, width: int, heads: int, layers: int, length: int, experts: int) -> None:
        super().__init__()
        choices = 2
        capacity = choices * length * 5 // (4 * experts)
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(
            Block(width, heads, Experts(width, experts, choices, capacity)) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        imbalances = []
        for block in self.blocks:
            x, imbalance = block(x)
            imbalances.append(imbalance)
        loss = F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())
        return loss + 0.01 * torch.stack(imbalances).mean()


def moe() -> tuple[MixtureOfExperts, tuple[Tensor, Tensor]]:
    """Two layers of width 128 with four experts, two for each token, batch 12, sequence 128."""
    model = MixtureOfExperts(vocabulary=256, width=128, heads=4, layers=2, length=128, experts=4)
    return model, (torch.randint(0, 256, (12, 128)), torch.randint(0, 256, (12, 128)))
