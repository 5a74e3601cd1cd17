"""Image classifiers of `transformers` at the sizes that were published, in float32.

Each configuration is copied from the `config.json` of the repository named beside it on huggingface.co; fields that are
left out have the library's default there, too. Models are built from the configuration: nothing is downloaded.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import (
    AutoModelForImageClassification,
    ConvNextConfig,
    PretrainedConfig,
    ResNetConfig,
    SwinConfig,
    ViTConfig,
)

Step = tuple[nn.Module, tuple[Tensor, Tensor]]
_CLASSES = 1000


class Classify(nn.Module):
    """Images and labels in, mean cross-entropy out."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return self.model(pixel_values=images, labels=labels).loss


def vit_large(batch: int = 64) -> Step:
    """google/vit-large-patch16-224: 304 million parameters, 197 tokens an image."""
    return _step(
        ViTConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096), batch
    )


def resnet50(batch: int = 128) -> Step:
    """microsoft/resnet-50: 25.6 million parameters; the stride is in the 3 × 3 convolution."""
    return _step(
        ResNetConfig(
            embedding_size=64, hidden_sizes=[256, 512, 1024, 2048], depths=[3, 4, 6, 3], layer_type="bottleneck"
        ),
        batch,
    )


def convnext_base(batch: int = 64) -> Step:
    """facebook/convnext-base-224: 88.6 million parameters, drop-path rates read from a tensor at construction."""
    return _step(ConvNextConfig(hidden_sizes=[128, 256, 512, 1024], depths=[3, 3, 27, 3], drop_path_rate=0.1), batch)


def swin_base(batch: int = 64) -> Step:
    """microsoft/swin-base-patch4-window7-224: 87.8 million parameters, attention in windows that are shifted."""
    return _step(SwinConfig(embed_dim=128, depths=[2, 2, 18, 2], num_heads=[4, 8, 16, 32], window_size=7), batch)


def _step(config: PretrainedConfig, batch: int) -> Step:
    config.num_labels = _CLASSES
    model = AutoModelForImageClassification.from_config(config)
    return Classify(model), (torch.randn(batch, 3, 224, 224), torch.randint(0, _CLASSES, (batch,)))
