"""A diffusion U-Net: the skips of the way down wait for the way up, so the first made is the last read."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Residual(nn.Module):
    """Two convolutions, with the time added between them."""

    def __init__(self, channels: int, out: int, time: int) -> None:
        super().__init__()
        self.norm_in, self.norm_out = nn.GroupNorm(8, channels), nn.GroupNorm(8, out)
        self.first = nn.Conv2d(channels, out, kernel_size=3, padding=1)
        self.second = nn.Conv2d(out, out, kernel_size=3, padding=1)
        self.time = nn.Linear(time, out)
        self.shortcut = nn.Conv2d(channels, out, kernel_size=1) if channels != out else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        inner = self.first(F.silu(self.norm_in(x))) + self.time(time)[:, :, None, None]
        return self.second(F.silu(self.norm_out(inner))) + self.shortcut(x)


class UNet(nn.Module):
    """Clean images, noise and time steps in, mean squared error of the guessed noise out."""

    def __init__(self, widths: tuple[int, ...], time: int) -> None:
        super().__init__()
        self.register_buffer("frequencies", torch.exp(-math.log(10000) * torch.arange(time // 2) / (time // 2)))
        self.embed = nn.Sequential(nn.Linear(time, time), nn.SiLU(), nn.Linear(time, time), nn.SiLU())
        self.stem = nn.Conv2d(3, widths[0], kernel_size=3, padding=1)
        pairs = list(pairwise(widths))
        self.down = nn.ModuleList(Residual(width, width, time) for width in widths[:-1])
        self.shrink = nn.ModuleList(nn.Conv2d(a, b, kernel_size=3, stride=2, padding=1) for a, b in pairs)
        self.middle = Residual(widths[-1], widths[-1], time)
        self.grow = nn.ModuleList(nn.Conv2d(b, a, kernel_size=3, padding=1) for a, b in reversed(pairs))
        self.up = nn.ModuleList(Residual(2 * width, width, time) for width in reversed(widths[:-1]))
        self.norm = nn.GroupNorm(8, widths[0])
        self.out = nn.Conv2d(widths[0], 3, kernel_size=3, padding=1)

    def forward(self, images: Tensor, noise: Tensor, steps: Tensor) -> Tensor:
        angles = steps[:, None] * self.frequencies
        time = self.embed(torch.cat((angles.sin(), angles.cos()), dim=1))
        share = (steps / 1000)[:, None, None, None]
        x = self.stem((1 - share).sqrt() * images + share.sqrt() * noise)
        skips = []
        for block, shrink in zip(self.down, self.shrink, strict=True):
            x = block(x, time)
            skips.append(x)
            x = shrink(x)
        x = self.middle(x, time)
        for grow, block in zip(self.grow, self.up, strict=True):
            x = grow(F.interpolate(x, scale_factor=2.0, mode="nearest"))
            x = block(torch.cat((x, skips.pop()), dim=1), time)
        return F.mse_loss(self.out(F.silu(self.norm(x))), noise)


def unet() -> tuple[UNet, tuple[Tensor, Tensor, Tensor]]:
    """Three resolutions of 32, 64 and 128 channels, batch 16, images of 32 × 32."""
    model = UNet(widths=(32, 64, 128), time=128)
    return model, (torch.randn(16, 3, 32, 32), torch.randn(16, 3, 32, 32), torch.randint(0, 1000, (16,)))
