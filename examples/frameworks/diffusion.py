"""diffusers: a small Flux and a small UNet of Stable Diffusion, their transformer blocks compiled by the library.

    pip install 'autockpt[frameworks]' && python examples/frameworks/diffusion.py

`compile_repeated_blocks` hands its arguments to `block.compile`, so backend and options reach autockpt as they are.
What stands around the blocks, in a UNet all convolutions, stays eager; its bytes count in the budget.
"""

from __future__ import annotations

import torch
from diffusers import FluxTransformer2DModel, UNet2DConditionModel
from torch import Tensor
from torch.nn import functional as F
from twice import compile_arguments, main, train_steps


def flux(budget: int | None) -> list[float]:
    """Flow matching: the velocity from noise to a latent, text and image tokens attending to each other."""
    model = FluxTransformer2DModel(
        in_channels=16,
        num_layers=2,
        num_single_layers=4,
        attention_head_dim=32,
        num_attention_heads=4,
        joint_attention_dim=64,
        pooled_projection_dim=64,
        axes_dims_rope=(8, 12, 12),
    )
    model.compile_repeated_blocks(**compile_arguments(budget))
    latents, text, pooled = torch.randn(4, 256, 16), torch.randn(4, 32, 64), torch.randn(4, 64)
    rows, columns = (grid.flatten() for grid in torch.meshgrid(torch.arange(16), torch.arange(16), indexing="ij"))
    positions = torch.stack([torch.zeros_like(rows), rows, columns], dim=1).float()

    def loss() -> Tensor:
        noise, time = torch.randn_like(latents), torch.rand(4)
        mixed = torch.lerp(latents, noise, time[:, None, None])
        found = model(
            hidden_states=mixed,
            encoder_hidden_states=text,
            pooled_projections=pooled,
            timestep=time,
            img_ids=positions,
            txt_ids=torch.zeros(32, 3),
        ).sample
        return F.mse_loss(found, noise - latents)

    return train_steps(model, loss)


def unet(budget: int | None) -> list[float]:
    """The noise in a latent, with cross attention to a text at two resolutions."""
    model = UNet2DConditionModel(
        sample_size=16,
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
        block_out_channels=(32, 64),
        layers_per_block=1,
        transformer_layers_per_block=2,
        cross_attention_dim=64,
        attention_head_dim=4,
        norm_num_groups=8,
    )
    model.compile_repeated_blocks(**compile_arguments(budget))
    latents, text = torch.randn(8, 4, 16, 16), torch.randn(8, 32, 64)

    def loss() -> Tensor:
        noise, time = torch.randn_like(latents), torch.randint(0, 1000, (8,))
        found = model(latents + noise, time, encoder_hidden_states=text).sample
        return F.mse_loss(found, noise)

    return train_steps(model, loss)


if __name__ == "__main__":
    main(flux, unet)
