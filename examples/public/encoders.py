"""Encoders and encoder-decoders of `transformers` at the sizes that were published.

Each configuration is copied from the `config.json` of the repository named beside it on huggingface.co; fields that are
left out have the library's default there, too. Models are built from the configuration: nothing is downloaded.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    T5Config,
    T5ForConditionalGeneration,
    WhisperConfig,
    WhisperForConditionalGeneration,
)


class Loss(nn.Module):
    """The loss of a model that is given its inputs and labels by these names."""

    def __init__(self, model: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.model(**dict(zip(self.names, inputs, strict=True))).loss


def bert_large(batch: int = 32, sequence: int = 512) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """google-bert/bert-large-uncased: 335 million parameters, masked tokens, float32."""
    config = BertConfig(
        vocab_size=30522, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
    )
    tokens = torch.randint(0, config.vocab_size, (batch, sequence))
    return Loss(BertForMaskedLM(config), ("input_ids", "labels")), (tokens, tokens)


def t5_large(batch: int = 16, source: int = 512, target: int = 128) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """google-t5/t5-large: 738 million parameters, a learned bias of positions, float32."""
    config = T5Config(
        vocab_size=32128,
        d_model=1024,
        d_kv=64,
        d_ff=4096,
        num_layers=24,
        num_heads=16,
        decoder_start_token_id=0,
        use_cache=False,
    )
    model = T5ForConditionalGeneration(config)
    tokens = torch.randint(0, 32100, (batch, source)), torch.randint(0, 32100, (batch, target))
    return Loss(model, ("input_ids", "labels")), tokens


def whisper_large(batch: int = 8, target: int = 448) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """openai/whisper-large-v3: 1.5 billion parameters, 30 seconds of sound as 3000 frames of 128 mels, bfloat16."""
    config = WhisperConfig(
        vocab_size=51866,
        num_mel_bins=128,
        d_model=1280,
        encoder_layers=32,
        encoder_attention_heads=20,
        encoder_ffn_dim=5120,
        decoder_layers=32,
        decoder_attention_heads=20,
        decoder_ffn_dim=5120,
        max_source_positions=1500,
        max_target_positions=448,
        use_cache=False,
        pad_token_id=50256,
        bos_token_id=50257,
        eos_token_id=50257,
        decoder_start_token_id=50258,
    )
    model = WhisperForConditionalGeneration(config).to(torch.bfloat16)
    sound = torch.randn(batch, 128, 3000, dtype=torch.bfloat16)
    return Loss(model, ("input_features", "labels")), (sound, torch.randint(0, 50000, (batch, target)))
