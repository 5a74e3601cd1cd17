"""A selective state-space model: its scan makes a state for every position and channel at each of its doublings."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def scan(decay: Tensor, drive: Tensor) -> Tensor:
    """`h[t] = decay[t] * h[t-1] + drive[t]` along dimension 1, in log₂(length) steps (Hillis and Steele 1986)."""
    reach = 1
    while reach < decay.shape[1]:
        before = (0, 0, 0, 0, reach, 0)
        drive = drive + decay * F.pad(drive[:, :-reach], before)
        decay = decay * F.pad(decay[:, :-reach], before, value=1.0)
        reach *= 2
    return drive


class Block(nn.Module):
    """A gated, input-dependent recurrence after a short causal convolution (Gu and Dao 2023)."""

    def __init__(self, width: int, states: int, kernel: int = 4) -> None:
        super().__init__()
        inner, rank = 2 * width, width // 16
        self.split = (rank, states, states)
        self.norm = nn.LayerNorm(width)
        self.enter, self.leave = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)
        self.look = nn.Conv1d(inner, inner, kernel, padding=kernel - 1, groups=inner)
        self.select = nn.Linear(inner, sum(self.split), bias=False)
        self.pace = nn.Linear(rank, inner)
        self.log_rate = nn.Parameter(torch.arange(1.0, states + 1).log().repeat(inner, 1))
        self.skip = nn.Parameter(torch.ones(inner))

    def forward(self, x: Tensor) -> Tensor:
        value, gate = self.enter(self.norm(x)).chunk(2, dim=-1)
        value = F.silu(self.look(value.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        pace, write, read = self.select(value).split(self.split, dim=-1)
        pace = F.softplus(self.pace(pace))
        decay = torch.exp(-pace[..., None] * self.log_rate.exp())
        states = scan(decay, (pace * value)[..., None] * write[:, :, None, :])
        made = (states * read[:, :, None, :]).sum(-1) + self.skip * value
        return x + self.leave(made * F.silu(gate))


class StateSpace(nn.Module):
    """Tokens and targets in, mean cross-entropy out."""

    def __init__(self, vocabulary: int, width: int, states: int, layers: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*(Block(width, states) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.blocks(self.token(tokens))
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def ssm() -> tuple[StateSpace, tuple[Tensor, Tensor]]:
    """Two layers of width 128 with eight states for each inner channel, batch 4, sequence 64."""
    model = StateSpace(vocabulary=256, width=128, states=8, layers=2)
    return model, (torch.randint(0, 256, (4, 64)), torch.randint(0, 256, (4, 64)))
