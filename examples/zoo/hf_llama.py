"""Llama as `transformers` writes it: rotary tables computed in the step, the scores of every token saved."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM


class Loss(nn.Module):
    """Tokens in, mean cross-entropy of every next token out."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.model = LlamaForCausalLM(config)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.model(input_ids=tokens, labels=tokens, use_cache=False).loss


def hf_llama() -> tuple[Loss, tuple[Tensor]]:
    """Two layers of width 256, eight heads that share two keys, batch 8, sequence 256; no weights are fetched."""
    config = LlamaConfig(
        vocab_size=1000,
        hidden_size=256,
        intermediate_size=704,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=2,
        max_position_embeddings=256,
        attn_implementation="sdpa",
        use_cache=False,
    )
    return Loss(config), (torch.randint(0, 1000, (8, 256)),)
