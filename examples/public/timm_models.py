"""Vision models of `timm`, small enough to train a step on a CPU: `autockpt verify @examples/public/timm.txt`.

timm imports torchvision, which must be built for the installed torch: `pip install timm` on a machine that trains, or a
CPU build of both. They are in no extra of autockpt, so that an environment with another build of torch stays as it is.
"""

from __future__ import annotations

from typing import Any

import timm
import torch
from torch import Tensor, nn
from torch.nn import functional as F

Step = tuple[nn.Module, tuple[Tensor, Tensor]]
_CLASSES = 100


class Classify(nn.Module):
    """Images and labels in, mean cross-entropy out."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(self.model(images), labels)


def vit(batch: int = 4) -> Step:
    """`vit_tiny_patch16_224`, four of its twelve layers: an embedding of patches by a 16 × 16 convolution."""
    return _step("vit_tiny_patch16_224", batch, 224, depth=4)


def convnext(batch: int = 4) -> Step:
    """`convnext_atto`: depthwise 7 × 7 convolutions."""
    return _step("convnext_atto", batch, 96, drop_path_rate=0.1)


def resnet(batch: int = 4) -> Step:
    """`resnet18`: the backward of a convolution at every size."""
    return _step("resnet18", batch, 96)


def swin(batch: int = 4) -> Step:
    """`swin_tiny_patch4_window7_224` with two of its four stages: attention in windows, which are shifted."""
    return _step("swin_tiny_patch4_window7_224", batch, 112, img_size=112, depths=(2, 2), num_heads=(3, 6))


def _step(name: str, batch: int, side: int, **settings: Any) -> Step:
    model = timm.create_model(name, num_classes=_CLASSES, **settings)
    return Classify(model), (torch.randn(batch, 3, side, side), torch.randint(0, _CLASSES, (batch,)))
