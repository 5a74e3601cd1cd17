"""A ConvNeXt: cheap depthwise convolutions between layouts, around an MLP whose middle is four times the stream."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.look = nn.Conv2d(width, width, kernel_size=7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.norm(self.look(x).permute(0, 2, 3, 1))
        inner = self.scale * self.down(F.gelu(self.up(inner)))
        return x + inner.permute(0, 3, 1, 2)


class Shrink(nn.Module):
    """Layer norm over the channels, then patches side by side become one."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.patch = nn.Conv2d(width, out, kernel_size=2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return self.patch(self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2))


class ConvNeXt(nn.Module):
    """Images and labels in, mean cross-entropy out."""

    def __init__(self, widths: tuple[int, ...], depth: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], kernel_size=4, stride=4)
        self.stages = nn.Sequential()
        for stage, width in enumerate(widths):
            if stage > 0:
                self.stages.append(Shrink(widths[stage - 1], width))
            self.stages.extend(Block(width) for _ in range(depth))
        self.norm = nn.LayerNorm(widths[-1])
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        x = self.stages(self.stem(images))
        return F.cross_entropy(self.head(self.norm(x.mean((2, 3)))), labels)


def convnext() -> tuple[ConvNeXt, tuple[Tensor, Tensor]]:
    """Two stages of two blocks, of width 64 and 128, batch 16, images of 96 × 96."""
    model = ConvNeXt(widths=(64, 128), depth=2, classes=100)
    return model, (torch.randn(16, 3, 96, 96), torch.randint(0, 100, (16,)))
