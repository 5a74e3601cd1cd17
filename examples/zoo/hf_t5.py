"""T5 as `transformers` writes it: a learned position bias and dropout make attention hold length × length matrices."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import T5Config, T5ForConditionalGeneration


class Loss(nn.Module):
    """Source and target sentences in, mean cross-entropy of the target tokens out."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.model = T5ForConditionalGeneration(config)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.model(input_ids=source, labels=target, use_cache=False).loss


def hf_t5() -> tuple[Loss, tuple[Tensor, Tensor]]:
    """Two layers of width 256 on each side, batch 8, 128 source and 96 target tokens; no weights are fetched."""
    config = T5Config(
        vocab_size=1000,
        d_model=256,
        d_kv=64,
        d_ff=1024,
        num_layers=2,
        num_heads=4,
        feed_forward_proj="gated-gelu",
        decoder_start_token_id=0,
        use_cache=False,
    )
    return Loss(config), (torch.randint(1, 1000, (8, 128)), torch.randint(1, 1000, (8, 96)))
