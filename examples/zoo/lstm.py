"""An LSTM language model, unrolled: hundreds of small values in a long chain, where one weight serves every step."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Cell(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gates = nn.Linear(2 * width, 4 * width)

    def forward(self, x: Tensor, hidden: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        enter, forget, leave, news = self.gates(torch.cat((x, hidden), dim=1)).chunk(4, dim=1)
        memory = forget.sigmoid() * memory + enter.sigmoid() * news.tanh()
        return leave.sigmoid() * memory.tanh(), memory


class LSTM(nn.Module):
    """Tokens and targets in, mean cross-entropy out."""

    def __init__(self, vocabulary: int, width: int, layers: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.cells = nn.ModuleList(Cell(width) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        steps = self.token(tokens).unbind(1)
        for cell in self.cells:
            hidden = memory = torch.zeros_like(steps[0])
            outputs = []
            for x in steps:
                hidden, memory = cell(x, hidden, memory)
                outputs.append(hidden)
            steps = tuple(outputs)
        return F.cross_entropy(self.head(torch.stack(steps, dim=1)).flatten(0, 1), targets.flatten())


def lstm() -> tuple[LSTM, tuple[Tensor, Tensor]]:
    """Two layers of width 256 over 24 steps, batch 128."""
    model = LSTM(vocabulary=256, width=256, layers=2)
    return model, (torch.randint(0, 256, (128, 24)), torch.randint(0, 256, (128, 24)))
