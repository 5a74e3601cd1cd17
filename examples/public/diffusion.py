"""The U-Net of Stable Diffusion XL as `diffusers` writes it, in bfloat16: 2.6 billion parameters.

Configuration: stabilityai/stable-diffusion-xl-base-1.0, `unet/config.json` on huggingface.co. Needs
`pip install diffusers`, which is in no extra of autockpt; nothing else is downloaded.
"""

from __future__ import annotations

import torch
from diffusers import UNet2DConditionModel
from torch import Tensor, nn
from torch.nn import functional as F


class Denoise(nn.Module):
    """Noisy latents, time steps and the encoded prompt in, mean squared error of the noise out."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, latents: Tensor, times: Tensor, text: Tensor, pooled: Tensor, sizes: Tensor) -> Tensor:
        conditions = {"text_embeds": pooled, "time_ids": sizes}
        noise = self.model(latents, times, text, added_cond_kwargs=conditions, return_dict=False)[0]
        return F.mse_loss(noise, latents)


def sdxl_unet(batch: int = 1, side: int = 128) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Latents of `side` x `side` are images of eight times that side."""
    model = UNet2DConditionModel(
        sample_size=128,
        in_channels=4,
        out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        block_out_channels=(320, 640, 1280),
        layers_per_block=2,
        transformer_layers_per_block=(1, 2, 10),
        attention_head_dim=(5, 10, 20),
        cross_attention_dim=2048,
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=256,
        projection_class_embeddings_input_dim=2816,
    ).to(torch.bfloat16)
    inputs = (
        torch.randn(batch, 4, side, side, dtype=torch.bfloat16),
        torch.randint(0, 1000, (batch,)),
        torch.randn(batch, 77, 2048, dtype=torch.bfloat16),
        torch.randn(batch, 1280, dtype=torch.bfloat16),
        torch.randn(batch, 6, dtype=torch.bfloat16),
    )
    return Denoise(model), inputs
