"""A diffusion transformer: shifts, scales and gates are small, and give every modulated stream again at little cost."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Block(nn.Module):
    """Attention and MLP, each shifted, scaled and gated by the condition."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.modulate = nn.Linear(width, 6 * width)
        # Nearly zero rather than zero, which would make every gradient inside the block zero in the first step.
        nn.init.normal_(self.modulate.weight, std=0.02)
        nn.init.zeros_(self.modulate.bias)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        shift, scale, gate, shift_mlp, scale_mlp, gate_mlp = self.modulate(condition)[:, None].chunk(6, dim=-1)
        qkv = self.qkv(self.norm(x) * (1 + scale) + shift).unflatten(2, (3, self.heads, -1))
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(query, key, value)
        x = x + gate * self.out(mixed.transpose(1, 2).flatten(2))
        return x + gate_mlp * self.down(F.gelu(self.up(self.norm(x) * (1 + scale_mlp) + shift_mlp), approximate="tanh"))


class DiT(nn.Module):
    """Clean latents, noise, time steps and classes in, mean squared error of the guessed noise out."""

    def __init__(self, side: int, channels: int, patch: int, width: int, heads: int, layers: int, classes: int) -> None:
        super().__init__()
        self.patch, inside = patch, channels * patch * patch
        self.enter, self.leave = nn.Linear(inside, width), nn.Linear(width, inside)
        self.position = nn.Parameter(torch.randn(1, (side // patch) ** 2, width) * 0.02)
        self.register_buffer("frequencies", torch.exp(-math.log(10000) * torch.arange(width // 2) / (width // 2)))
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.label = nn.Embedding(classes, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)

    def patchify(self, images: Tensor) -> Tensor:
        """Images as rows of patches."""
        tiles = images.unflatten(3, (-1, self.patch)).unflatten(2, (-1, self.patch))
        return tiles.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)

    def forward(self, latents: Tensor, noise: Tensor, steps: Tensor, labels: Tensor) -> Tensor:
        angles = steps[:, None] * self.frequencies
        condition = F.silu(self.time(torch.cat((angles.sin(), angles.cos()), dim=1)) + self.label(labels))
        share = (steps / 1000)[:, None, None, None]
        x = self.enter(self.patchify((1 - share).sqrt() * latents + share.sqrt() * noise)) + self.position
        for block in self.blocks:
            x = block(x, condition)
        return F.mse_loss(self.leave(self.norm(x)), self.patchify(noise))


def dit() -> tuple[DiT, tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Three layers of width 192 over 2 × 2 patches of 16 × 16 latents with four channels, batch 32."""
    model = DiT(side=16, channels=4, patch=2, width=192, heads=3, layers=3, classes=10)
    latents, noise = torch.randn(32, 4, 16, 16), torch.randn(32, 4, 16, 16)
    return model, (latents, noise, torch.randint(0, 1000, (32,)), torch.randint(0, 10, (32,)))
