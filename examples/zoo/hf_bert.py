"""BERT as `transformers` writes it: dropout everywhere, a padding mask, and a tied decoder that scores every token."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM


class Loss(nn.Module):
    """Tokens, which of them are no padding, and targets in, cross-entropy of the masked tokens out."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.model = BertForMaskedLM(config)

    def forward(self, tokens: Tensor, visible: Tensor, targets: Tensor) -> Tensor:
        return self.model(input_ids=tokens, attention_mask=visible, labels=targets).loss


def hf_bert() -> tuple[Loss, tuple[Tensor, Tensor, Tensor]]:
    """Three layers of width 256, batch 8, sequences of up to 128 tokens; no weights are fetched."""
    batch, length, vocabulary, mask_token, ignored = 8, 128, 1000, 1, -100
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=1024,
        max_position_embeddings=length,
        attn_implementation="sdpa",
    )
    truth = torch.randint(2, vocabulary, (batch, length))
    visible = torch.arange(length) < torch.randint(length // 2, length + 1, (batch, 1))
    masked = (torch.rand(batch, length) < 0.15) & visible
    inputs = (truth.masked_fill(masked, mask_token), visible.long(), truth.masked_fill(~masked, ignored))
    return Loss(config), inputs
