"""An MLP-Mixer: every other layer works on the transposed stream, so memory is paid for two layouts of each value."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class MLP(nn.Module):
    def __init__(self, width: int, hidden: int, bias: bool = True) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    """Mix the tokens of every channel, then the channels of every token."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.norm_tokens, self.norm_channels = nn.LayerNorm(width), nn.LayerNorm(width)
        # A bias here would move all channels of a token alike, which every norm after it takes out again.
        self.tokens = MLP(tokens, 2 * tokens, bias=False)
        self.channels = MLP(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.norm_tokens(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm_channels(x))


class Mixer(nn.Module):
    """Images and labels in, mean cross-entropy out."""

    def __init__(self, side: int, patch: int, width: int, layers: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, kernel_size=patch, stride=patch)
        self.blocks = nn.Sequential(*(Block((side // patch) ** 2, width) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        x = self.blocks(self.patches(images).flatten(2).transpose(1, 2))
        return F.cross_entropy(self.head(self.norm(x).mean(1)), labels)


def mixer() -> tuple[Mixer, tuple[Tensor, Tensor]]:
    """Three blocks of width 192 over 8 × 8 patches of 64 × 64 images, batch 32."""
    model = Mixer(side=64, patch=8, width=192, layers=3, classes=100)
    return model, (torch.randn(32, 3, 64, 64), torch.randint(0, 100, (32,)))
