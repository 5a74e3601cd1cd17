"""A residual convolutional net: batch norm writes its statistics in the step, and early layers hold most bytes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def convolve(channels: int, out: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """A convolution and its batch norm."""
    convolution = nn.Conv2d(channels, out, kernel, stride, padding=kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(out))


class Bottleneck(nn.Module):
    """Narrow, look around, widen; the shortcut is strided and projected where the shape changes."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        narrow = out // 4
        self.narrow = convolve(channels, narrow, kernel=1)
        self.look = convolve(narrow, narrow, kernel=3, stride=stride)
        self.widen = convolve(narrow, out, kernel=1)
        same = stride == 1 and channels == out
        self.shortcut = nn.Identity() if same else convolve(channels, out, kernel=1, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.widen(F.relu(self.look(F.relu(self.narrow(x)))))
        return F.relu(inner + self.shortcut(x))


class ResNet(nn.Module):
    """Images and labels in, mean cross-entropy out."""

    def __init__(self, width: int, blocks: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.stem = convolve(3, width, kernel=7, stride=2)
        self.pool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.blocks = nn.Sequential()
        channels = width
        for stage, depth in enumerate(blocks):
            out = 4 * width * 2**stage
            for number in range(depth):
                self.blocks.append(Bottleneck(channels, out, stride=2 if stage > 0 and number == 0 else 1))
                channels = out
        self.head = nn.Linear(channels, classes)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        x = self.blocks(self.pool(F.relu(self.stem(images))))
        return F.cross_entropy(self.head(x.mean((2, 3))), labels)


def resnet() -> tuple[ResNet, tuple[Tensor, Tensor]]:
    """Three stages of two, one and one bottlenecks, batch 16, images of 96 × 96."""
    model = ResNet(width=32, blocks=(2, 1, 1), classes=100)
    return model, (torch.randn(16, 3, 96, 96), torch.randint(0, 100, (16,)))
