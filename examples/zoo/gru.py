"""A GRU classifier, unrolled: only the last state meets the loss, and every step's gates wait for the way back."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Cell(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.from_input, self.from_state = nn.Linear(width, 3 * width), nn.Linear(width, 3 * width)

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        update, reset, news = self.from_input(x).chunk(3, dim=1)
        state_update, state_reset, state_news = self.from_state(state).chunk(3, dim=1)
        keep = (update + state_update).sigmoid()
        candidate = (news + (reset + state_reset).sigmoid() * state_news).tanh()
        return keep * state + (1 - keep) * candidate


class GRU(nn.Module):
    """Sequences of features and their labels in, mean cross-entropy out."""

    def __init__(self, features: int, width: int, layers: int, classes: int) -> None:
        super().__init__()
        self.enter = nn.Linear(features, width)
        self.cells = nn.ModuleList(Cell(width) for _ in range(layers))
        self.head = nn.Linear(width, classes)

    def forward(self, sequences: Tensor, labels: Tensor) -> Tensor:
        steps = self.enter(sequences).unbind(1)
        states = [torch.zeros_like(steps[0]) for _ in self.cells]
        for x in steps:
            for layer, cell in enumerate(self.cells):
                states[layer] = x = cell(x, states[layer])
        return F.cross_entropy(self.head(states[-1]), labels)


def gru() -> tuple[GRU, tuple[Tensor, Tensor]]:
    """Two layers of width 192 over 24 steps of 40 features, batch 192."""
    model = GRU(features=40, width=192, layers=2, classes=50)
    return model, (torch.randn(192, 24, 40), torch.randint(0, 50, (192,)))
